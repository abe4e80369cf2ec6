"""What can be said to Prometheus and how: names, labels, whose fault it was, and an endpoint that does not give up."""

import asyncio
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from litestar import Litestar, get
from litestar.params import FromPath

from tests.support.metrics import ask
from tests.support.waiting import wait_until
from windlass.services.actors.worker.metrics import result_of
from windlass.services.api.http.request_metrics import RequestMetrics
from windlass.services.laptop.ports import free_port
from windlass.shared.errors import (
    ERROR_TYPES,
    ContentRejected,
    NetworkTimeout,
    RateLimited,
    ServiceUnavailable,
    Unauthorized,
    fault_of,
)
from windlass.shared.metrics import catalogue, counting
from windlass.shared.metrics.declaring import CATALOGUE, SERVICES, Declared, Kept
from windlass.shared.metrics.services import HTTP_REQUESTS
from windlass.shared.metrics.serving import MetricsServer
from windlass.shared.metrics.tasks import FINISHED
from windlass.shared.providers.base import OrderUnknown
from windlass.shared.settings import Settings

LABELS = {
    "actor", "attempt", "by", "direction", "duty", "end", "error_type", "fault", "feature", "kind", "lane", "method",
    "mode", "next", "operation", "outcome", "provider", "queue", "reason", "result", "rhythm", "route", "service",
    "state", "status", "version", "what",
}  # fmt: skip
"""Each one has few values, whatever people do with a Windlass."""

every_metric = pytest.mark.parametrize("declared", CATALOGUE, ids=lambda declared: declared.name)


@every_metric
def test_names_and_labels_are_those_of_the_house(declared: Declared) -> None:
    assert re.fullmatch(r"windlass_[a-z0-9_]+", declared.name)
    assert declared.name.endswith("_total") == (declared.kind == "counter")
    assert set(declared.labels) <= LABELS
    assert declared.services
    assert set(declared.services) <= set(SERVICES)
    assert declared.meaning
    assert not declared.meaning.endswith(".")


def test_every_metric_is_in_one_part_and_named_once() -> None:
    listed = [each for part in catalogue.parts() for each in part.metrics]
    assert len({each.name for each in listed}) == len(listed) == len(CATALOGUE)


def test_every_error_has_somebody_whose_fault_it_is() -> None:
    faults = {name: fault_of(name) for name in ERROR_TYPES}
    assert {name for name, fault in faults.items() if fault == "user"} == {
        "InvalidInput", "NotFound", "ContentRejected", "ResultTooLarge", "ResultTooDeep", "DependencyFailed",
    }  # fmt: skip
    assert {name for name, fault in faults.items() if fault == "provider"} == {
        "RateLimited", "ServiceUnavailable", "NetworkTimeout", "SubmitUnknown",
    }  # fmt: skip
    assert fault_of("ZeroDivisionError") == "system"
    assert fault_of("DeliveryFailed") == fault_of("DeliveryDropped") == "user", "whoever named the endpoint"


@pytest.mark.parametrize("error", [each for each in ERROR_TYPES.values() if each.is_the_providers_fault])
def test_what_counts_against_a_provider_is_its_fault(error: Any) -> None:
    assert error.fault == "provider"


@pytest.mark.parametrize(
    ("error", "result"),
    [
        (RateLimited("429"), "rate_limited"),
        (ContentRejected("no"), "refused"),
        (Unauthorized("no"), "refused"),
        (ServiceUnavailable("503"), "failed"),
        (NetworkTimeout("late", sent=True), "timeout"),
        (NetworkTimeout("gone", sent=False), "unreachable"),
        (KeyError("a bug"), "failed"),
    ],
)
def test_a_call_s_result_is_told_by_its_error(error: Exception, result: str) -> None:
    assert result_of(error) == result
    doubt = OrderUnknown("?")
    doubt.__cause__ = error
    assert result_of(doubt) == result


def test_ends_are_counted_with_the_dependents_that_they_bury() -> None:
    kept = Kept(FINISHED)
    tokens = [uuid4() for _ in range(4)]

    @dataclass
    class Ended:
        claim_token: UUID | None
        status: str
        actor: str = "probe"
        provider: str = "unit"
        age_seconds: float | None = 1.0

    @dataclass
    class Ending:
        claim_token: UUID
        error: dict[str, Any] | None

    outcomes = [
        Ended(tokens[0], "dead"),
        Ended(None, "dead", provider="unit-child"),
        Ended(tokens[1], "retrying"),
        Ended(tokens[2], "cancelled"),
    ]
    errors = ("RateLimited", "TimedOut", "TimedOut", "lost")
    counting.attempts_ended(
        [Ending(token, {"type": error}) for token, error in zip(tokens, errors, strict=True)], outcomes
    )
    assert kept["probe", "unit", "dead", "provider"]._value.get() == 1
    assert kept["probe", "unit-child", "dead", "user"]._value.get() == 1
    assert kept["probe", "unit", "cancelled", "none"]._value.get() == 1
    assert sum(child._value.get() for labels, child in kept.items() if labels[1].startswith("unit")) == 3


def test_requests_are_counted_by_the_pattern_of_their_route() -> None:
    @get("/things/{name:str}", sync_to_thread=False)
    def thing(name: FromPath[str]) -> str:
        return name

    async def ask_all() -> None:
        app: Any = RequestMetrics(Litestar([thing], logging_config=None, openapi_config=None))
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://api") as client:
            for path in ("/things/one", "/things/two", "/nothing", "/nothing/at/all"):
                await client.get(path)

    counted = HTTP_REQUESTS.labels("GET", "/things/{name}", "200"), HTTP_REQUESTS.labels("GET", "other", "404")
    before = [each._value.get() for each in counted]
    asyncio.run(ask_all())
    assert [each._value.get() - was for each, was in zip(counted, before, strict=True)] == [2, 2]


@pytest.fixture
def server() -> Iterator[MetricsServer]:
    port = free_port()
    server = MetricsServer(Settings(metrics_port=port), lambda: b"windlass_answer 42\n")
    server.port = port  # type: ignore[attr-defined]
    yield server
    server.stop()


def test_an_endpoint_waits_for_its_port_and_answers_there(server: Any) -> None:
    """The process that had it may just be ending; and nobody waits for it."""
    with socket.create_server(("127.0.0.1", server.port)):
        server.start()
        assert server._thread.is_alive()
    wait_until("it answers", lambda: _answers(server.port))
    assert ask(server.port) == "windlass_answer 42\n"
    assert httpx.get(f"http://127.0.0.1:{server.port}/elsewhere", timeout=60, trust_env=False).status_code == 404


def test_a_client_that_asks_nothing_keeps_nobody_waiting(server: Any) -> None:
    server.start()
    wait_until("it answers", lambda: _answers(server.port))
    with socket.create_connection(("127.0.0.1", server.port)):
        assert ask(server.port) == "windlass_answer 42\n"


def _answers(port: int) -> bool:
    try:
        return bool(ask(port))
    except httpx.TransportError:
        return False
