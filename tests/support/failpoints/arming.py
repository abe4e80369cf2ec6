"""Failpoints as a test uses them: it arms them, waits until a call has reached them, and lets go what they hold."""

from collections.abc import Mapping
from pathlib import Path

from tests.support.failpoints.injection import HELD, HOLD
from tests.support.waiting import wait_until

AT_START = Path(__file__).parent / "at_start"
PROJECT = Path(__file__).parents[3]


class Failpoints:
    """Those of all workers that are started with this directory in their environment."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._directory.mkdir(exist_ok=True)

    @property
    def environment(self) -> Mapping[str, str]:
        """What a worker has to be started with."""
        return {"FAILPOINTS_DIRECTORY": str(self._directory), "PYTHONPATH": f"{AT_START}:{PROJECT}"}

    def hold(self, name: str) -> None:
        """The next call that comes there is held."""
        self._arm(name, HOLD)

    def kill(self, name: str) -> None:
        """The next worker that comes there is killed."""
        self._arm(name, "")

    def wait_until_held(self, name: str) -> None:
        wait_until(f"{name} is reached", (self._directory / f"{name}{HELD}").exists)

    def wait_until_spent(self, name: str) -> None:
        wait_until(f"{name} is reached", lambda: not (self._directory / name).exists())

    def let_all_go(self, *, but: str | None = None) -> None:
        for each in self._directory.iterdir():
            if each.stem != but:
                each.unlink()

    def _arm(self, name: str, word: str) -> None:
        """The file appears with its word in it: an empty one kills."""
        beside = self._directory / f"{name}.new"
        beside.write_text(word)
        beside.rename(self._directory / name)
