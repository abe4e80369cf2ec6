"""Notes in which files of the project functions are called, and when, in each process of `docs.path_of_a_probe`."""

import os
import sys
import threading
import time

PROJECT, NOTES = os.environ["TRACED_PROJECT"], os.environ["TRACED_NOTES"]
noted: set[tuple[str, int]] = set()
own: dict[str, bool] = {}
to = os.open(os.path.join(NOTES, f"{os.getpid()}"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)  # noqa: PTH118


def note(frame: object, event: str, _argument: object) -> None:
    name: str = frame.f_code.co_filename  # type: ignore[attr-defined]
    if event != "call" or not own.setdefault(name, name.startswith(PROJECT) and ".venv" not in name):
        return
    moment = int(time.time() * 1000)
    if (name, moment) not in noted:
        noted.add((name, moment))
        os.write(to, f"{moment} {name}\n".encode())


threading.setprofile(note)
sys.setprofile(note)
