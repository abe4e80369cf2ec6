"""Where media files live: a directory that all processes share, or an S3-compatible bucket."""

from windlass.shared.storage.directory import claim_directory
from windlass.shared.storage.errors import MissingMedia, PlaceTaken, StorageError, StorageUnavailable, UnusableStorage
from windlass.shared.storage.files import MediaStorage
from windlass.shared.storage.opening import open_storage

__all__ = [
    "MediaStorage",
    "MissingMedia",
    "PlaceTaken",
    "StorageError",
    "StorageUnavailable",
    "UnusableStorage",
    "claim_directory",
    "open_storage",
]
