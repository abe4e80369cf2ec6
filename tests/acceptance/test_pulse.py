"""Probes that look from outside: what makes a worker or another process count as dead, and what does not."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.installation import PROJECT, START_SECONDS, Process, Windlass
from tests.support.waiting import wait_until
from windlass.services.laptop.ports import free_port
from windlass.shared.process.procfs import descendants
from windlass.shared.process.pulse import trouble

PROCESSES = ("actors", "dispatcher", "janitor", "orchestrator")


def alive(file: Path, *options: str) -> bool:
    """As a kubelet asks."""
    command = [sys.executable, "-m", "windlass.services.cli", "alive", *options, str(file)]
    return subprocess.run(command, cwd=PROJECT, stderr=subprocess.DEVNULL, check=False).returncode == 0


def wait_until_ready(file: Path) -> None:
    wait_until(f"{file.name} is ready", lambda: trouble(file, ready=True) is None, seconds=START_SECONDS)
    wait_until("a probe finds so, too", lambda: alive(file, "--ready"))


def start(windlass: Windlass, service: str, **settings: str) -> tuple[Process, Path]:
    file = windlass.directory / f"{service}.pulse"
    pulse = {"WINDLASS_PULSE_FILE": str(file), "WINDLASS_PULSE_SECONDS": "2"}
    return windlass.start(service, **pulse, **settings), file


def test_they_are_alive_and_ready_while_rabbitmq_is_away(stopped_windlass: Windlass) -> None:
    nowhere = f"amqp://guest:guest@127.0.0.1:{free_port()}/"
    files = [start(stopped_windlass, service, WINDLASS_AMQP_URL=nowhere)[1] for service in PROCESSES]
    for file in files:
        wait_until_ready(file)


def test_they_are_alive_and_not_ready_while_postgres_is_away(stopped_windlass: Windlass) -> None:
    nowhere = f"postgresql://nobody@127.0.0.1:{free_port()}/nothing"
    files = [start(stopped_windlass, service, WINDLASS_DATABASE_URL=nowhere)[1] for service in (*PROCESSES, "api")]
    for file in files:
        wait_until(f"{file.name} beats", file.exists, seconds=START_SECONDS)
        wait_until("a probe finds so, too", lambda file=file: alive(file))  # type: ignore[misc]
        assert not alive(file, "--ready")


def test_a_worker_with_a_dead_thread_has_no_pulse(stopped_windlass: Windlass) -> None:
    """It beats until its threads are there, and then no more; its heartbeat alone would keep its lease for ever."""
    path = os.pathsep.join([str(Path(__file__).parent / "dead_threads"), str(PROJECT)])
    _, file = start(stopped_windlass, "actors", PYTHONPATH=path)
    wait_until("it has started", lambda: "serves probe" in stopped_windlass.log(), seconds=START_SECONDS)
    wait_until("its last word is no longer believed", lambda: file.exists() and not alive(file))
    last = file.read_text()
    assert not alive(file)
    assert file.read_text() == last


@pytest.mark.parametrize("service", ["dispatcher", "janitor", "orchestrator"])
def test_a_frozen_process_has_no_pulse_until_it_is_thawed(stopped_windlass: Windlass, service: str) -> None:
    process, file = start(stopped_windlass, service)
    wait_until_ready(file)
    process.send_signal(signal.SIGSTOP)
    wait_until("nobody believes it", lambda: not alive(file))
    process.send_signal(signal.SIGCONT)
    wait_until("it is believed again", lambda: alive(file))


def test_a_frozen_worker_is_replaced_by_its_guardian_before_a_probe_gives_up(stopped_windlass: Windlass) -> None:
    guardian, file = start(stopped_windlass, "actors")
    wait_until_ready(file)
    (worker,) = wait_until("its worker", lambda: found if len(found := descendants(guardian.pid)) == 1 else None)
    os.kill(worker.pid, signal.SIGSTOP)
    wait_until("the guardian ends it", lambda: not worker.is_running())
    wait_until_ready(file)
