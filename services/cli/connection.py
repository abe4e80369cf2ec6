"""Which Windlass the command line speaks to: the one that is named, else the one that `make up` runs here."""

from dataclasses import dataclass
from pathlib import Path

from windlass.client import here
from windlass.client.errors import NotConfigured
from windlass.client.target import from_environment

NAME_ONE = "name one with --url and --key, or with WINDLASS_URL and WINDLASS_API_KEY"


class WrongSetting(NotConfigured):
    """A setting of the command line is missing or wrong."""


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
    url, key = here.completed_from(directory, url, key)
    if url is None:
        raise NotConfigured(f"no Windlass runs on {directory}: start one with `make up`, or {NAME_ONE}")
    if key is None:
        raise WrongSetting(f"no key for {url}: give one with --key or WINDLASS_API_KEY")
    return Connection(url, key)


def _data_directory() -> Path:
    # Imported late: whoever names the API need not wait for it.
    from windlass.shared.settings.loading import WrongSettings, load_settings  # noqa: PLC0415

    try:
        return load_settings().data_dir.absolute()
    except WrongSettings as error:
        raise WrongSetting(f"{error}; or {NAME_ONE}") from error
