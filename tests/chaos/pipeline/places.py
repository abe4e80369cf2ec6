"""The places of a worker's pipeline, armed and let go from outside."""

from pathlib import Path

from tests.support.waiting import wait_until
from windlass.services.actors.worker.failpoints import HELD, HOLD


class Places:
    """To be made before the worker starts, which looks for none without their folder."""

    def __init__(self, data_directory: Path) -> None:
        self._directory = data_directory / "failpoints" / "pipeline"
        self._directory.mkdir(parents=True)

    def hold(self, place: str) -> None:
        """The next one that comes by is held there."""
        self._arm(place, HOLD)

    def kill(self, place: str) -> None:
        """The next worker that comes by is killed there."""
        self._arm(place, "")

    def wait_until_held(self, place: str) -> None:
        wait_until(f"somebody comes to {place}", (self._directory / f"{place}{HELD}").exists)

    def wait_until_spent(self, place: str) -> None:
        wait_until(f"somebody comes to {place}", lambda: not (self._directory / place).exists())

    def let_all_go(self, *, but: str | None = None) -> None:
        for each in self._directory.iterdir():
            if each.stem != but:
                each.unlink()

    def _arm(self, place: str, word: str) -> None:
        """It is there with its word at once: an empty one kills."""
        beside = self._directory / f"{place}.new"
        beside.write_text(word)
        beside.rename(self._directory / place)
