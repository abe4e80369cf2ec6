"""The private directories that agents work in: made for each attempt, gone after it, also when a worker was killed."""

import logging
import os
import shutil
import socket
import stat
import threading
from contextlib import suppress
from contextvars import copy_context
from pathlib import Path
from uuid import UUID

from windlass.shared.process.accounts import Account
from windlass.shared.process.procfs import ProcessIdentity

log = logging.getLogger("actors.agent")

PASSABLE = stat.S_IRWXU | stat.S_IXGRP | stat.S_IXOTH
"""For an account that has a place of its own further down."""


class Workplaces:
    """Those of one worker, below a directory that is named after its process: a successor sees whether it still lives.

    The data directory may be shared with other machines, whose process numbers mean nothing here.
    """

    def __init__(self, directory: Path, owner: ProcessIdentity, account: Account | None = None) -> None:
        """`account` is whom root runs agents as, and whose the places are."""
        self._all = directory
        self._account = account
        self._own = directory / f"{socket.gethostname()}-{owner.pid}-{owner.started}"

    def clear_leftovers(self) -> None:
        """Whatever workers of this machine that are dead by now have left behind."""
        for place in self._all.glob(f"{socket.gethostname()}-*-*"):
            pid, started = place.name.rsplit("-", 2)[1:]
            if not (pid.isdigit() and started.isdigit()):
                continue
            if not ProcessIdentity(int(pid), int(started)).is_running():
                log.info("clearing %s, which a worker that is gone has left", place)
                remove(place)

    def make(self, task_id: UUID, attempt: int) -> Path:
        place = self._own / f"{task_id}-{attempt}"
        for directory in (self._all, self._own):
            directory.mkdir(parents=True, exist_ok=True, mode=stat.S_IRWXU)
            if self._account is not None:
                directory.chmod(PASSABLE)
        inner = place / "tmp"
        for directory in (place, inner):
            directory.mkdir(mode=stat.S_IRWXU)
        if self._account is not None:
            for directory in (inner, place):  # the outer one last: then nobody else can change what the inner one is
                os.chown(directory, self._account.uid, self._account.gid)
        return place

    def discard(self, place: Path) -> None:
        """Beside the attempt: a hundred thousand files take their time, and the end of the task need not wait."""
        removing = copy_context().run  # its lines are about the task as well
        threading.Thread(target=removing, args=(remove, place), name="workplace", daemon=True).start()


def remove(place: Path) -> None:
    shutil.rmtree(place, onerror=lambda _function, path, _error: _unlock(Path(path)))
    shutil.rmtree(place, ignore_errors=True)  # what has been unlocked
    if place.exists():
        log.warning("could not remove all of %s", place)


def _unlock(path: Path) -> None:
    """Only directories keep their content from being removed; a link's target is none of our business."""
    for each in (path.parent, path):
        with suppress(OSError):
            if stat.S_ISDIR(each.lstat().st_mode):
                each.chmod(stat.S_IRWXU)
