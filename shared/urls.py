"""Addresses that somebody hands us, read before anybody is asked to go there."""

import re

LONGEST_NAME = 253

_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)", re.IGNORECASE)


def check_url(url: str) -> None:
    """Raises a `ValueError` that says what is wrong with it. Read by the library that will ask for it, and closer: that
    one finds a name that cannot be decoded, or a port that does not exist, only when it is on its way."""
    import httpx  # noqa: PLC0415 - an api that is given no addresses does without it

    try:
        parts = httpx.URL(url)
        host, port = parts.host, parts.port
    except (httpx.InvalidURL, UnicodeError) as error:
        raise ValueError(f"not a URL: {error}") from None
    if parts.scheme not in {"http", "https"}:
        raise ValueError("a URL begins with https:// or http://")
    if port is not None and not 0 < port < 65536:
        raise ValueError(f"there is no port {port}")
    if ":" not in host:  # which only an IPv6 address has
        _check_name(parts.raw_host.decode("ascii"))


_NAME = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_PORT = "([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
ENDPOINT_PATTERN = rf"^https?:[/]/{_NAME}(\.{_NAME}){{0,10}}(:{_PORT})?([/?][A-Za-z0-9/?&=._~%+,;:@!$-]*)?$"
"""A name and a port, without credentials or a fragment."""


def check_endpoint(url: str) -> str:
    """The same for an address that is told of things later: it is stored as it is, and shown to whoever may read it."""
    import httpx  # noqa: PLC0415 - as above

    check_url(url)
    parts = httpx.URL(url)
    if parts.userinfo:
        raise ValueError("credentials in a URL are not kept; the signature says who sends")
    if parts.fragment:
        raise ValueError("a part behind # is never sent")
    return url


def _check_name(name: str) -> None:
    if not name:
        raise ValueError("a URL names a host")
    name = name.removesuffix(".")
    if len(name) > LONGEST_NAME or not all(_LABEL.fullmatch(label) for label in name.split(".")):
        raise ValueError("the URL's host is no name that could be looked up")
