"""Many speakers, one terminal: whole lines, and nobody is held up by a reader."""

import os
import threading

from windlass.services.laptop.supervision.console import WAITING_LINES, Console

PATIENCE = 60
"""Nobody is cut off here because the machine is busy."""


def test_lines_are_prefixed_with_padded_names() -> None:
    reading, writing = os.pipe()
    console = Console(writing, writing, ["api", "dispatcher"])
    console.line("api", "hello")
    console.line("dispatcher", "")
    console.announce("windlass ready")
    console.close(PATIENCE)
    assert os.read(reading, 1000).decode() == "api        | hello\ndispatcher | \nwindlass ready\n"
    os.close(reading)
    os.close(writing)


def test_lines_of_many_threads_stay_whole() -> None:
    reading, writing = os.pipe()
    console = Console(writing, writing, ["a", "b", "c"])

    def talk(name: str) -> None:
        for _ in range(500):
            console.line(name, name * 100)

    speakers = [threading.Thread(target=talk, args=(name,)) for name in "abc"]
    for speaker in speakers:
        speaker.start()
    received = b""
    while received.count(b"\n") < 1_500:
        received += os.read(reading, 65_536)
    for speaker in speakers:
        speaker.join()
    console.close(PATIENCE)
    assert set(received.decode().splitlines()) == {f"{name}        | {name * 100}" for name in "abc"}
    os.close(reading)
    os.close(writing)


def test_a_reader_that_went_away_costs_only_the_lines() -> None:
    log_reading, log_writing = os.pipe()
    reading, writing = os.pipe()
    os.close(reading)
    console = Console(log_writing, writing, [])
    console.announce("nobody hears this")
    console.line("windlass", "still here")
    console.close(PATIENCE)
    assert os.read(log_reading, 1000) == b"windlass | still here\n"
    for descriptor in (log_reading, log_writing, writing):
        os.close(descriptor)


def test_a_reader_that_does_not_read_holds_up_nobody() -> None:
    reading, writing = os.pipe()
    console = Console(writing, writing, [])
    for number in range(3 * WAITING_LINES):
        console.line("windlass", f"line {number} {'x' * 100}")
    received = b""
    while b"lines left out" not in received:
        received += os.read(reading, 65_536)
    os.close(reading)
    console.close(PATIENCE)
    os.close(writing)
