"""Python imports this by itself in a process that finds it on its path: there a probe works in four steps, and waits
at a place of its own for all the others to be at theirs. Then the process is killed."""

import os
import signal
import time
from pathlib import Path
from typing import Any

from windlass.actors import actor
from windlass.services.actors import probe
from windlass.services.actors.worker.context.context import Context
from windlass.shared.actors.payloads import ProbePayload

STEPS = 4


class Work:
    """One attempt's; only the first comes to its place and stays there."""

    def __init__(self, directory: Path, place: str, number_of_places: int, *, is_mortal: bool) -> None:
        self._directory = directory
        self._place = place
        self._number_of_places = number_of_places
        self._is_mortal = is_mortal

    def do(self, number: int) -> int:
        with (self._directory / f"work {self._place}").open("a") as file:
            file.write(f"{number}\n")
        self.come_to(f"in {number}")
        return 10 * number

    def come_to(self, place: str) -> None:
        if self._is_mortal and place == self._place:
            (self._directory / f"at {place}").touch()
            while len(list(self._directory.glob("at *"))) < self._number_of_places:
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGKILL)


def work_in_steps(context: Context, payload: ProbePayload) -> dict[str, Any]:
    said = payload.result
    is_mortal = context.task.attempt == 1
    work = Work(Path(said["directory"]), said["place"], said["places"], is_mortal=is_mortal)
    done = []
    for number in range(1, STEPS + 1):
        done.append(context.step(f"step {number}", work.do, number))
        work.come_to(f"after {number}")
    return {"done": done}


probe.probe = actor(name="probe")(work_in_steps)
