"""Where the API is, who asks, and what the wire's own trouble is called."""

import os
from dataclasses import dataclass
from typing import Any, Final

import httpx

from windlass.client import here
from windlass.client.call import Request
from windlass.client.conversation import Answer
from windlass.client.errors import NotConfigured, Unreachable

LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
NEVER_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)


def from_environment() -> tuple[str | None, str | None]:
    """The address and the key that the environment names."""
    return os.environ.get("WINDLASS_URL") or None, os.environ.get("WINDLASS_API_KEY") or None


@dataclass(frozen=True)
class Target:
    url: str
    key: str
    timeout: float

    @classmethod
    def choose(cls, url: str | None, key: str | None, timeout: float) -> "Target":
        """What was given, else `WINDLASS_URL` and `WINDLASS_API_KEY`, else what `windlass up` runs here."""
        known_url, known_key = from_environment()
        url, key = url or known_url, key or known_key
        if not (url and key):
            url, key = here.completed_from(here.data_directory(), url, key)
        if not url:
            raise NotConfigured(
                "no address: give url=… or set WINDLASS_URL, for example http://127.0.0.1:8800; "
                f"and no `windlass up` runs on {here.data_directory()}"
            )
        if not key:
            raise NotConfigured("no key: give key=… or set WINDLASS_API_KEY")
        try:
            address = httpx.URL(url)
        except (httpx.InvalidURL, TypeError) as error:
            raise NotConfigured(f"{url!r} is not an address: {error}") from error
        if address.scheme not in {"http", "https"} or not address.host:
            raise NotConfigured(f"{url!r} is not an address: it should be like http://127.0.0.1:8800")
        if not key.isascii() or not key.isprintable() or " " in key:
            raise NotConfigured("the key holds characters that no key has; it should be like wl_…")
        return cls(url.rstrip("/"), key, timeout)

    def settings(self) -> dict[str, Any]:
        """For httpx; what is on this machine is never reached through a proxy."""
        return {
            "base_url": self.url,
            "headers": {"Authorization": f"Bearer {self.key}", "User-Agent": "windlass-python"},
            "timeout": self.timeout,
            "trust_env": httpx.URL(self.url).host not in LOOPBACK,
        }

    def wire(self, request: Request, *, read_seconds: float | None = None) -> dict[str, Any]:
        """A request as httpx takes it."""
        silence = self.timeout + request.held_back_seconds if read_seconds is None else read_seconds
        return {
            "method": request.method,
            "url": request.path,
            "params": dict(request.params),
            "headers": dict(request.headers),
            "content": request.body,
            "timeout": httpx.Timeout(self.timeout, read=silence),
        }

    def unreachable(self, error: httpx.RequestError) -> Unreachable:
        reason = str(error) or type(error).__name__
        return Unreachable(f"cannot reach {self.url}: {reason}", sent=not isinstance(error, NEVER_SENT))


def answer(response: httpx.Response) -> Answer:
    return Answer(response.status_code, response.content, response.headers.get("retry-after"))
