"""The pulse: until when a process may be believed, and when it falls silent."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from windlass.services.cli.main import main
from windlass.shared.process.pulse import BEATS, Pulse, trouble
from windlass.shared.settings import Settings


def pulse_of(file: Path, *, believed_seconds: float = 60, **options: Any) -> Pulse:
    return Pulse(Settings(pulse_file=file, pulse_seconds=believed_seconds), **options)


def test_a_process_that_beats_is_believed(tmp_path: Path) -> None:
    pulse_of(tmp_path / "pulse").beat()
    assert trouble(tmp_path / "pulse", ready=False) is None


def test_a_process_is_ready_when_it_says_so(tmp_path: Path) -> None:
    pulse = pulse_of(tmp_path / "pulse")
    pulse.beat()
    assert "not got ready yet" in str(trouble(tmp_path / "pulse", ready=True))
    pulse.is_ready = True
    pulse.beat()
    assert trouble(tmp_path / "pulse", ready=True) is None


def test_a_process_whose_parts_have_died_falls_silent(tmp_path: Path) -> None:
    lives = True
    pulse = pulse_of(tmp_path / "pulse", lives=lambda: lives)
    pulse.beat()
    before = (tmp_path / "pulse").read_text()
    lives = False
    pulse.beat()
    assert (tmp_path / "pulse").read_text() == before


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("ready {long_ago} 15", "no pulse for"),
        ("ready {ahead} 15", "no pulse for"),
        ("ready soon 15", "holds no pulse"),
        ("", "holds no pulse"),
    ],
)
def test_what_is_too_old_or_no_pulse_at_all_is_not_believed(tmp_path: Path, content: str, reason: str) -> None:
    """Ahead lies one that was written before the machine was started anew."""
    now = time.monotonic()
    file = tmp_path / "pulse"
    file.write_text(content.format(long_ago=now - 15.1, ahead=now + 60))
    assert reason in str(trouble(file, ready=False))


def test_a_few_missed_beats_are_forgiven() -> None:
    assert BEATS >= 3


def test_a_stuck_event_loop_has_no_pulse(tmp_path: Path) -> None:
    file = tmp_path / "pulse"

    async def get_stuck() -> str:
        beating = asyncio.create_task(pulse_of(file, believed_seconds=1).run())
        await asyncio.sleep(0)
        written = file.read_text()
        time.sleep(0.5)  # noqa: ASYNC251 - it is stuck
        beating.cancel()
        return written

    assert asyncio.run(get_stuck()) == file.read_text()


def test_without_a_file_nobody_beats() -> None:
    asyncio.run(Pulse(Settings()).run())


def test_the_command_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "pulse"
    assert main(["alive", str(file)]) == 1
    assert capsys.readouterr().err == f"windlass: there is no pulse yet: {file}\n"
    pulse_of(file).beat()
    assert main(["alive", str(file)]) == 0
    assert main(["alive", "--ready", str(file)]) == 1
    assert main(["alive"]) == 2
