"""What can go wrong with stored files. None of it is an `OSError`, which elsewhere means that Postgres is away."""


class StorageError(Exception):
    """A file could not be stored, read or looked for."""


class MissingMedia(StorageError):
    """There is no whole file at a place."""


class PlaceTaken(StorageError):
    """A place holds another file already, and names never change their meaning."""


class StorageUnavailable(StorageError):
    """The storage does not answer, or refuses to; trying again may help."""


class UnusableStorage(Exception):
    """The storage is not set up as it has to be: a process that starts with it ends, saying so."""
