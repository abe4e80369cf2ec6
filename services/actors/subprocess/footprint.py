"""What an agent's workplace holds, its tmp included: so many bytes on the disk, in so many files."""

import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice

from windlass.shared.process.procfs import open_files, path_of

WALK_SECONDS = 1.0
ENTRIES_AT_ONCE = 5_000
"""A look must not take long: whoever forks is watched by the same process. A large workplace takes several looks."""

DEEPEST = 100
"""No tree of honest work is deeper; one that is counts as too many files."""

BLOCK_BYTES = 512
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class TooDeep(Exception):
    """Directories in directories without end."""


class Footprint:
    """Measured again and again, a bit at each look, and compared with what it may be at most.

    Made before the agent is: it is held by a descriptor, whatever becomes of its name.
    """

    def __init__(self, place: str, *, most_bytes: int | None, most_files: int | None) -> None:
        self._place = os.open(place, DIRECTORY)
        self._most_bytes = most_bytes
        self._most_files = most_files
        self._walk: Iterator[str | None] = iter(())
        self._due_at = 0.0

    def look(self, pids: Sequence[int]) -> str | None:
        """The name of the limit that is exceeded, as far as is known by now; `pids` are the agent's processes."""
        if time.monotonic() >= self._due_at:
            self._walk = self._measure(pids)
            self._due_at = float("inf")
        walked = 0
        for exceeded in islice(self._walk, ENTRIES_AT_ONCE):
            walked += 1
            if exceeded:
                return exceeded
        if walked < ENTRIES_AT_ONCE and self._due_at == float("inf"):
            self._due_at = time.monotonic() + WALK_SECONDS
        return None

    def look_once_more(self) -> str | None:
        """Of all of it, when nobody is left: who wrote everything in its last moment has written it all the same."""
        return next(filter(None, self._measure(())), None)

    def _measure(self, pids: Sequence[int]) -> Iterator[str | None]:
        """One answer for each thing that was looked at."""
        size, files, counted = 0, 0, set()
        try:
            for status in _everything(self._place, pids):
                if status is not None:
                    itself = (status.st_dev, status.st_ino)
                    if status.st_nlink == 1 or itself not in counted:
                        size += status.st_blocks * BLOCK_BYTES
                    if status.st_nlink != 1:  # a directory, a file with several names, or one with none any more
                        counted.add(itself)
                    files += 1
                yield self._exceeded(size, files)
        except TooDeep:
            yield None if self._most_files is None else "files"

    def _exceeded(self, size: int, files: int) -> str | None:
        if self._most_bytes is not None and size > self._most_bytes:
            return "file_mb"
        return "files" if self._most_files is not None and files > self._most_files else None


def _everything(place: int, pids: Sequence[int]) -> Iterator[os.stat_result | None]:
    """What has a name, and then what has none any more but is held open."""
    os.lseek(place, 0, os.SEEK_SET)  # an earlier walk may have stopped half-way
    yield from _below(place, 1)
    yield from _without_names(pids, os.fstat(place).st_dev)


def _below(directory: int, depth: int) -> Iterator[os.stat_result | None]:
    """From descriptor to descriptor: the agent could make a link, to anywhere, of any part of a path meanwhile."""
    with os.scandir(directory) as entries:
        for entry in entries:
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:  # gone by now
                continue
            yield status
            if stat.S_ISDIR(status.st_mode):
                if depth == DEEPEST:
                    raise TooDeep
                if (inner := _opened(entry.name, directory)) is not None:
                    try:
                        yield from _below(inner, depth + 1)
                    finally:
                        os.close(inner)


def _opened(name: str, directory: int) -> int | None:
    """Also one that the agent has shut for itself, so that nobody sees what is inside."""
    try:
        return os.open(name, DIRECTORY, dir_fd=directory)
    except PermissionError:
        with suppress(OSError):
            handle = os.open(name, os.O_PATH | DIRECTORY, dir_fd=directory)
            try:
                os.chmod(path_of(handle), stat.S_IRWXU)  # noqa: PTH101 - this very directory, not its name
                return os.open(".", DIRECTORY, dir_fd=handle)
            finally:
                os.close(handle)
    except OSError:
        pass
    return None


def _without_names(pids: Sequence[int], device: int) -> Iterator[os.stat_result | None]:
    for pid in pids:
        for status in open_files(pid):
            held = status is not None and stat.S_ISREG(status.st_mode) and status.st_nlink == 0
            yield status if status is not None and held and status.st_dev == device else None
