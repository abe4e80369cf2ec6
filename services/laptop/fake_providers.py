"""The bundled fake providers' place in an installation that has not every provider's key."""

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

from windlass.services.laptop.ports import LOOPBACK, kept_port
from windlass.shared.settings import Settings


def are_needed(settings: Settings) -> bool:
    """When a provider that they play could not be reached at all, and nobody has named a server that stands in."""
    return settings.fake_providers_url is None and any(
        settings.is_played(name) and settings.endpoint_of(name) is None for name in settings.providers
    )


def choose_url(settings: Settings, directory: Path) -> str | None:
    """The same over restarts, since addresses of files and jobs are kept; none when they are not needed."""
    if not are_needed(settings):
        return None
    return f"http://{LOOPBACK}:{kept_port(directory / 'fake_providers_port')}"


async def answers(url: str) -> bool:
    """It listens only when it is ready."""
    address = urlsplit(url)
    try:
        _, writer = await asyncio.open_connection(address.hostname, address.port)
    except OSError:
        return False
    writer.close()
    return True
