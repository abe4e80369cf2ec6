"""Addresses that somebody hands us, read before anybody is asked to go there."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

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


_PLAIN = r"[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]"
"""What RFC 3986 allows in a URL."""


def check_endpoint(url: str) -> str:
    """The same for the URL of a webhook, which is stored as it is written and shown to every reader."""
    import httpx  # noqa: PLC0415 - as above

    check_url(url)
    parts = httpx.URL(url)
    if parts.userinfo:
        raise ValueError("credentials in a URL are not kept; the signature says who sends")
    if parts.fragment:
        raise ValueError("a part behind # is never sent")
    if not url.startswith(("https://", "http://")):
        raise ValueError("must begin with https:// or http://, in lower case")
    if strange := re.sub(_PLAIN, "", url):
        raise ValueError(
            f"has the character {strange[0]!r}, which must be percent-encoded (in a host: written as xn--…)"
        )
    return url


EndpointUrl = Annotated[
    str,
    # In the document alone: pydantic would answer with the pattern, and `check_endpoint` gives the reason.
    Field(max_length=2000, json_schema_extra={"pattern": rf"^https?://{_PLAIN}+$"}),
    AfterValidator(check_endpoint),
]


def _check_name(name: str) -> None:
    if not name:
        raise ValueError("a URL names a host")
    name = name.removesuffix(".")
    if len(name) > LONGEST_NAME or not all(_LABEL.fullmatch(label) for label in name.split(".")):
        raise ValueError("the URL's host is no name that could be looked up")
