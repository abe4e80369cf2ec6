"""Dates at the edges of what a calendar holds, for every parameter and field that takes one."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.installation import Client, Windlass

OFFSETS = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
MOMENTS = st.datetimes(timezones=st.none() | OFFSETS).map(datetime.isoformat) | st.dates().map(date.isoformat)
FIRST, LAST = "0001-01-01T00:00:00", "9999-12-31T23:59:59"
EDGES = [each + offset for each in (FIRST, LAST) for offset in ("", "Z", "+14:00", "-12:00")]

PAST = {"from": "2025-06-02T00:30:00Z", "to": "2025-06-02T00:40:00Z"}
BODIES: dict[str, tuple[str, dict[str, Any], str]] = {
    "task": ("/api/v1/tasks", {"actor": "probe", "payload": {}}, "run_at"),
    "bulk": ("/api/v1/tasks/bulk", {"action": "cancel", "dry_run": True, "filter": {}}, "filter.created_after"),
    "memory": ("/api/v1/memory/search", {"query": "anything"}, "created_after"),
    "backfill-cron": ("/api/v1/schedules/hourly/backfill", PAST, "from"),
    "backfill-east": ("/api/v1/schedules/yearly/backfill", PAST, "from"),
    "backfill-every": ("/api/v1/schedules/steady/backfill", PAST, "from"),
    "backfill-to": ("/api/v1/schedules/hourly/backfill", PAST, "to"),
}
"""Path, the rest of the body, and the field that holds the moment."""


@pytest.fixture(scope="module")
def api(module_windlass: Windlass) -> Client:
    module_windlass.start("api")
    module_windlass.wait_until_answering()
    client = module_windlass.client
    target = {"task": {"actor": "probe", "payload": {}}}
    for name, times in (
        ("hourly", {"cron": "0 * * * *", "timezone": "America/Los_Angeles"}),
        ("yearly", {"cron": "0 0 29 2 *", "timezone": "Pacific/Kiritimati"}),
        ("steady", {"every_seconds": 3600}),
    ):
        body = {"name": name, "target": target, **times}
        client.http.post("/api/v1/schedules", json=body).raise_for_status()
    return client


def dated_parameters(api: Client) -> Iterator[tuple[str, str]]:
    for path, methods in api.http.get("/schema/openapi.json").json()["paths"].items():
        for each in methods.get("get", {}).get("parameters", []):
            if each["in"] == "query" and each["schema"].get("format") in {"date", "date-time"}:
                yield path.replace("{schedule}", "hourly"), each["name"]


def test_no_date_in_a_query_breaks_a_list(api: Client) -> None:
    parameters = list(dated_parameters(api))
    assert ("/api/v1/stats", "to") in parameters

    @settings(max_examples=20)
    @given(moment=MOMENTS)
    def ask(moment: str) -> None:
        for path, name in parameters:
            query = {name: moment[:10] if path == "/api/v1/stats" else moment, "days": "366"}
            query |= {"q": "anything", "query": "anything"} if "memory" in path else {}
            answer = api.http.get(path, params=query)
            assert answer.status_code in {200, 400, 422}, (path, query, answer.text)

    for edge in EDGES:
        ask = example(moment=edge)(ask)
    ask()


@pytest.mark.parametrize("operation", BODIES)
def test_no_date_in_a_body_breaks_an_operation(api: Client, operation: str) -> None:
    path, rest, field = BODIES[operation]

    @settings(max_examples=20)
    @given(moment=MOMENTS)
    def send(moment: str) -> None:
        outer, _, inner = field.rpartition(".")
        body = {**rest, outer: {inner: moment}} if outer else {**rest, inner: moment}
        answer = api.http.post(path, json=body)
        assert answer.status_code in {200, 201, 202, 422}, (body, answer.text)
        assert answer.status_code != 422 or inner in answer.text, (body, answer.text)

    for edge in EDGES:
        send = example(moment=edge)(send)
    send()


def test_the_days_of_statistics_begin_with_the_first_there_is(api: Client) -> None:
    answer = api.http.get("/api/v1/stats", params={"to": "0001-01-01", "days": 366})
    assert (answer.status_code, answer.json()) == (200, {"items": []})
