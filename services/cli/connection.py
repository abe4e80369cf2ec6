"""Which Windlass the command line speaks to: the one that is named, else the one that `make up` runs here."""

import json
from dataclasses import dataclass
from pathlib import Path

from windlass.client.errors import NotConfigured
from windlass.client.target import from_environment

NAME_ONE = "name one with --url and --key, or with WINDLASS_URL and WINDLASS_API_KEY"


@dataclass(frozen=True)
class Connection:
    url: str
    key: str


def choose_connection(url: str | None, key: str | None) -> Connection:
    """Raises NotConfigured, saying what to do, when it does not know where to go."""
    known_url, known_key = from_environment()
    url, key = url or known_url, key or known_key
    if url and key:
        return Connection(url, key)
    directory = _data_directory()
    here = _url_of_run_file(directory / "run.json")
    if url is None and here is None:
        raise NotConfigured(f"no Windlass runs on {directory}: start one with `make up`, or {NAME_ONE}")
    url = (url or here or "").rstrip("/")
    if key is None and url == here:
        key = _read(directory / "admin_key")
    if key is None:
        raise NotConfigured(f"no key for {url}: give one with --key or WINDLASS_API_KEY")
    return Connection(url, key)


def _data_directory() -> Path:
    # Imported late: whoever names the API need not wait for it.
    from windlass.shared.settings.loading import WrongSettings, load_settings  # noqa: PLC0415

    try:
        return load_settings().data_dir.absolute()
    except WrongSettings as error:
        raise NotConfigured(f"{error}; or {NAME_ONE}") from error


def _url_of_run_file(path: Path) -> str | None:
    content = _read(path)
    if content is None:
        return None
    try:
        return str(json.loads(content)["api"]["url"])
    except (ValueError, KeyError, TypeError) as error:
        raise NotConfigured(f"{path} is not as `make up` writes it: {error}") from error


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise NotConfigured(f"cannot read {path} ({error.strerror}): {NAME_ONE}") from error
