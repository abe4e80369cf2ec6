"""The Windlass that `windlass up` runs on a data directory: where it is, and the key that it has made."""

import json
import os
import tomllib
from pathlib import Path
from typing import Final

from windlass.client.errors import NotConfigured

DATA_DIR: Final = ".windlass"
RUN_FILE: Final = "run.json"
KEY_FILE: Final = "admin_key"


def data_directory() -> Path:
    """As `windlass up` in this directory and environment would choose it."""
    return Path(os.environ.get("WINDLASS_DATA_DIR") or _configured() or DATA_DIR).absolute()


def url_at(directory: Path) -> str | None:
    """None where nothing runs."""
    path = directory / RUN_FILE
    content = _read(path)
    if content is None:
        return None
    try:
        return str(json.loads(content)["api"]["url"])
    except (ValueError, KeyError, TypeError) as error:
        raise NotConfigured(f"{path} is not as `windlass up` writes it: {error}") from error


def key_at(directory: Path) -> str | None:
    return _read(directory / KEY_FILE)


def completed_from(directory: Path, url: str | None, key: str | None) -> tuple[str | None, str | None]:
    """What was not given, from what runs there; its key is for nobody but itself."""
    here = url_at(directory)
    url = (url or here or "").rstrip("/") or None
    if key is None and url is not None and url == here:
        key = key_at(directory)
    return url, key


def _configured() -> str | None:
    """What the file says that `WINDLASS_CONFIG` names; one that cannot be read is for the server to complain of."""
    try:
        with Path(os.environ.get("WINDLASS_CONFIG") or os.devnull).open("rb") as file:
            said = tomllib.load(file).get("data_dir")
    except (OSError, ValueError):
        return None
    return said if isinstance(said, str) else None


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise NotConfigured(f"cannot read {path} ({error.strerror}): set WINDLASS_URL and WINDLASS_API_KEY") from error
