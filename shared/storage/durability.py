"""Files that survive a power cut: their contents and every directory entry that leads to them are on the disk."""

import os
from pathlib import Path


def settle(path: Path, root: Path) -> None:
    """Flushes the file and the directories above it, up to and including `root`, where all names begin."""
    flush(path)
    for directory in path.parents:
        flush(directory)
        if directory == root:
            return


def flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
