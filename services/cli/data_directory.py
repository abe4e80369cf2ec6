"""The data directory of one installation, used by one supervisor at a time."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from services.cli.kept_files import make_directory
from services.cli.supervision.unit import StartFailure


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[Path]:
    """Creates the directory if need be and holds its lock, which the kernel drops with this process."""
    try:
        make_directory(directory)
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
        yield directory
    finally:
        os.close(descriptor)
