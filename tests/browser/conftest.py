"""One installation and one browser for a module, and a visitor for each test."""

from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser

from tests.browser.chromium import a_browser, why_not
from tests.browser.visitor import Visitor
from tests.support.installation import KEY
from tests.support.media_installation import Studio, a_studio
from tests.support.servers.private_servers import Servers


@pytest.fixture(scope="module")
def house(
    servers: Servers, migrated_template: str, management: httpx.Client, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Studio]:
    """A Windlass that draws pictures, runs probes, and lets its workers be killed."""
    if reason := why_not():
        pytest.skip(reason)
    directory = tmp_path_factory.mktemp("house")
    with a_studio(servers, migrated_template, management, directory, actors=("media", "probe")) as studio:
        yield studio


@pytest.fixture(scope="module")
def chromium(house: Studio) -> Iterator[Browser]:
    """For a module and no longer: while it is open, its thread has an event loop that runs."""
    with a_browser() as browser:
        yield browser


@pytest.fixture
def stranger(house: Studio, chromium: Browser) -> Iterator[Visitor]:
    """A browser with nothing in it."""
    with Visitor.comes(chromium, house.windlass.url) as visitor:
        yield visitor


@pytest.fixture
def admin(stranger: Visitor) -> Visitor:
    """Somebody who may do everything."""
    stranger.signs_in_with(KEY)
    return stranger
