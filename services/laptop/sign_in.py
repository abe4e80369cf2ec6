"""A link that signs a browser in once, for whoever has just started everything."""

from urllib.parse import urlsplit

import httpx

from windlass.services.laptop.address import Address
from windlass.shared.settings import Settings


async def sign_in_link(settings: Settings, address: Address) -> str | None:
    """None when the api gives none: then there is the key."""
    headers = {"Authorization": f"Bearer {address.key}"}
    try:
        # Never through a proxy from the environment: it is our own process, next door.
        async with httpx.AsyncClient(base_url=address.url, headers=headers, timeout=5, trust_env=False) as client:
            made = (await client.post("/api/v1/session-links")).raise_for_status().json()
        link = urlsplit(str(made["url"]))
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        return None
    # An api that listens everywhere knows no name of its own that a browser could ask for.
    return link.geturl() if settings.public_url else f"{address.url}{link.path}#{link.fragment}"
