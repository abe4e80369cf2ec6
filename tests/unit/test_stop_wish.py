"""A worker is told to stop by signals, which may come two at once and meet any of its threads."""

import signal
import subprocess
import sys
import threading

import pytest

from windlass.services.actors.stop_wish import StopWish

WAITING = """
import os, signal, sys, threading, time
from windlass.services.actors.stop_wish import StopWish

wish = StopWish()
wish.listen()
sys.setswitchinterval(600)  # no thread runs before another one waits: all signals are there when the first is heard

def speak():
    time.sleep(0.2)  # the main thread goes on, until it waits
    for number in {signals}:
        signal.pthread_kill(threading.get_ident(), number)
    time.sleep(60)

threading.Thread(target=speak, daemon=True).start()
wish.wait()
print(wish.reason, wish.is_hurried, flush=True)
os._exit(0)
"""


@pytest.mark.parametrize(
    ("signals", "said"),
    [
        ([signal.SIGTERM], "told to stop False"),
        ([signal.SIGUSR1], "told to stop at once True"),
        ([signal.SIGTERM, signal.SIGUSR1], "told to stop at once True"),
    ],
)
def test_a_signal_that_meets_another_thread_wakes_the_one_that_waits(signals: list[int], said: str) -> None:
    code = WAITING.format(signals=[int(each) for each in signals])
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert ended.stdout.strip() == said


def test_the_first_reason_counts_and_a_hurry_that_comes_later() -> None:
    wish = StopWish()
    threading.Timer(0.01, wish.say, ["drained"]).start()
    wish.wait()
    wish.say("told to stop at once", at_once=True)
    assert (wish.reason, wish.is_hurried) == ("drained", True)


def test_more_is_said_than_the_pipe_holds() -> None:
    wish = StopWish()
    for _ in range(100_000):
        wish.say("again and again")
    wish.wait()
