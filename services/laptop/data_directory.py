"""The data directory of one installation, used by one supervisor at a time."""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from windlass.services.laptop.kept_files import make_directory
from windlass.services.laptop.supervision.unit import StartFailure

MADE_BY_SERVICES: Final = ("downloads", "fake_providers", "media")
"""Our umask keeps new ones private; those that an older version made, as root, are open to every user."""

GIGABYTE: Final = 10**9


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[Path]:
    """Creates the directory if need be and holds its lock, which the kernel drops with this process."""
    try:
        if not directory.is_dir():  # one that somebody made is theirs to open and to close
            make_directory(directory, leads_to_postgres=True)
        # Python opens files that children do not inherit: a child that lives on must not keep the lock.
        descriptor = os.open(directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StartFailure(f"cannot use the data directory {directory}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 32).decode().strip() or "unknown"
            raise StartFailure(
                f"`windlass up` already runs on {directory} (process {holder}); "
                "stop that one, or name another directory with WINDLASS_DATA_DIR"
            ) from None
        os.truncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        close_to_others(directory)
        yield directory
    finally:
        os.close(descriptor)


def shortage(directory: Path) -> str | None:
    """Returns a warning if the disk is nearly full."""
    usage = shutil.disk_usage(directory)
    return warning(directory, usage.free, usage.total)


def warning(directory: Path, free: int, total: int) -> str | None:
    """Nearly full is under 1 GB free, or under 5 % and 10 GB."""
    if free >= max(GIGABYTE, min(total // 20, 10 * GIGABYTE)):
        return None
    return (
        f"the disk is nearly full: {free / GIGABYTE:.1f} of {total / GIGABYTE:.1f} GB are free at {directory}; "
        "make room, because no task is accepted once it is full"
    )


def close_to_others(directory: Path) -> None:
    for name in MADE_BY_SERVICES:
        if (directory / name).is_dir():
            make_directory(directory / name)
