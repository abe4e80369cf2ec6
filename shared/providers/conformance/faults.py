"""Everything that can befall a request, without a server: clients whose every request meets the same fault."""

from collections.abc import Callable
from dataclasses import dataclass

import httpx

from windlass.shared.errors import (
    InvalidInput,
    NetworkTimeout,
    QuotaExhausted,
    RateLimited,
    ServiceUnavailable,
    TaskError,
    Unauthorized,
)
from windlass.shared.providers.conformance.promise import Broken, described

KEY = "key-of-the-conformance-suite"
"""Must appear in no error."""

RETRY_AFTER_SECONDS = 7


@dataclass(frozen=True)
class Fault:
    """`error` is what it means; `in_doubt` that an order which met it may have been taken."""

    sentence: str
    meet: Callable[[httpx.Request], httpx.Response]
    error: type[TaskError]
    in_doubt: bool = False


def status(number: int, **headers: str) -> Callable[[httpx.Request], httpx.Response]:
    said = {"error": {"code": number, "message": f"the suite says {number} to {KEY}"}}
    return lambda _: httpx.Response(
        number, json=said, headers={name.replace("_", "-"): headers[name] for name in headers}
    )


def lost(kind: type[httpx.TransportError]) -> Callable[[httpx.Request], httpx.Response]:
    def meet(request: httpx.Request) -> httpx.Response:
        raise kind("lost by the suite", request=request)

    return meet


def nonsense(_request: httpx.Request) -> httpx.Response:
    return httpx.Response(200, html="<html><body>Just a moment…</body></html>")


FAULTS = (
    Fault("a 400 is InvalidInput", status(400), InvalidInput),
    Fault("a 401 is Unauthorized", status(401), Unauthorized),
    Fault("a 402 is QuotaExhausted", status(402), QuotaExhausted),
    Fault("a 429 is RateLimited", status(429, retry_after=str(RETRY_AFTER_SECONDS)), RateLimited),
    Fault("a 503 is ServiceUnavailable", status(503), ServiceUnavailable),
    Fault("no connection is NetworkTimeout", lost(httpx.ConnectError), NetworkTimeout),
    Fault("a 500 is ServiceUnavailable", status(500), ServiceUnavailable, in_doubt=True),
    Fault("a 504 is ServiceUnavailable", status(504), ServiceUnavailable, in_doubt=True),
    Fault("no answer in time is NetworkTimeout", lost(httpx.ReadTimeout), NetworkTimeout, in_doubt=True),
    Fault("a lost connection is NetworkTimeout", lost(httpx.RemoteProtocolError), NetworkTimeout, in_doubt=True),
    Fault("an answer that nobody can read is ServiceUnavailable", nonsense, ServiceUnavailable, in_doubt=True),
)


def client_that_meets(fault: Fault) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.MockTransport(fault.meet), timeout=5, trust_env=False)


def check_error(fault: Fault, error: Exception) -> None:
    """That it is the right one, tells when to come again, and tells nobody the key."""
    if not isinstance(error, fault.error):
        raise Broken(f"it was {described(error)}, and not {fault.error.__name__}")
    check_key_is_hidden(error)
    if isinstance(error, RateLimited) and error.retry_after != RETRY_AFTER_SECONDS:
        raise Broken(f"its Retry-After was {RETRY_AFTER_SECONDS} s, and retry_after is {error.retry_after}")


def check_key_is_hidden(error: BaseException) -> None:
    if KEY in str(error) or KEY in str(getattr(error, "details", "")):
        raise Broken("the error quotes the key; `ask` takes it out where it is given as `key`")
