"""An api for the tests of media, with nothing but Postgres and a directory behind it: the tests are the workers."""

from collections.abc import Iterator
from uuid import UUID

import httpx
import pytest

from tests.support.an_api import an_api
from tests.support.installation import Windlass
from tests.support.servers.private_servers import Servers
from windlass.shared.settings import Settings
from windlass.shared.storage import MediaStorage, open_storage

CALLBACK_KEY = "the-key-that-studio-calls-with"
CONFIG = """
[providers.studio]
actor = "media"
adapter = "tests.support.providers.studio_adapter"
callback_key_env = "STUDIO_CALLBACK_KEY"

[providers.studio-without-key]
actor = "media"
adapter = "tests.support.providers.studio_adapter"
"""


@pytest.fixture(scope="module")
def api(servers: Servers, migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Windlass]:
    directory = tmp_path_factory.mktemp("media")
    config = directory / "windlass.toml"
    config.write_text(CONFIG)
    settings = {
        "WINDLASS_CONFIG": str(config),
        "WINDLASS_STREAM_PATIENCE_SECONDS": "2",
        "WINDLASS_TRUSTED_PROXIES": "127.0.0.1",
        "STUDIO_CALLBACK_KEY": CALLBACK_KEY,
    }
    with an_api(servers, migrated_template, directory, **settings) as windlass:
        yield windlass


def storage_of(api: Windlass) -> MediaStorage:
    return open_storage(Settings(media_storage=api.environment["WINDLASS_MEDIA_STORAGE"]))


def address(api: Windlass, content_id: UUID | str) -> str:
    return f"{api.url}/api/v1/media/{content_id}"


def without_key(url: str, method: str = "GET", **headers: str) -> httpx.Response:
    """As an `<img>` asks."""
    return httpx.request(method, url, headers=headers, trust_env=False, verify=False, timeout=60)
