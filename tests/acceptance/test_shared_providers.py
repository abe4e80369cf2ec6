"""One account for two kinds of work: a provider with two queues, whose workers come and go by themselves."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.acceptance.conftest import a_windlass_apart
from tests.support.installation import Windlass
from tests.support.providers.fake_providers import fake_providers
from tests.support.servers.databases import ask
from tests.support.servers.private_servers import Servers

CONFIG = """
[providers.openrouter]
actors = ["summarize", "probe"]
limit = 1
"""
SUMMARY: dict[str, Any] = {
    "actor": "summarize",
    "payload": {"content": "A long text. It goes on. And on."},
    "priority": 0,
}

MOST_AT_ONCE = """
SELECT max(running) AS most FROM (
    SELECT sum(CASE e.type WHEN 'claim' THEN 1 ELSE -1 END) OVER (ORDER BY e.at, e.xid) AS running
    FROM task_events e JOIN tasks t USING (task_id)
    WHERE t.provider = 'openrouter' AND e.type IN ('claim', 'complete', 'retry', 'bury', 'interrupt')
) AS counted
"""


@pytest.fixture
def windlass(
    servers: Servers, migrated_template: str, management: httpx.Client, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Windlass]:
    """Its worker serves one of the two queues."""
    with (
        fake_providers(tmp_path_factory.mktemp("fake")) as fake,
        a_windlass_apart(
            servers,
            migrated_template,
            management,
            tmp_path_factory.mktemp("shared"),
            config=CONFIG,
            WINDLASS_QUEUES="probe.openrouter",
            WINDLASS_FAKE_PROVIDERS_URL=fake.url,
        ) as windlass,
    ):
        windlass.start_all()
        yield windlass


def test_a_queue_without_a_worker_takes_no_place_and_one_limit_is_over_both(windlass: Windlass) -> None:
    client = windlass.client
    unserved = [client.submit(provider="openrouter", **SUMMARY)["task_id"] for _ in range(3)]
    served = [client.submit(provider="openrouter", priority=5)["task_id"] for _ in range(3)]
    for task_id in served:
        client.wait_until(task_id, "completed")
    assert {client.get(task_id)["status"] for task_id in unserved} == {"queued"}
    why = client.http.get(f"/api/v1/tasks/{unserved[0]}/why").raise_for_status().json()
    assert why["reason"] == "no-worker"
    shown = client.http.get("/api/v1/providers/openrouter").raise_for_status().json()
    assert (shown["actors"], shown["queues"]) == (
        ["summarize", "probe"],
        ["summarize.openrouter", "probe.openrouter"],
    )

    windlass.start("actors", WINDLASS_QUEUES="summarize.openrouter")
    more = [client.submit(provider="openrouter", payload={"seconds": 0.05})["task_id"] for _ in range(3)]
    for task_id in [*unserved, *more]:
        client.wait_until(task_id, "completed")
    (row,) = ask(windlass.environment["WINDLASS_DATABASE_URL"], MOST_AT_ONCE)
    assert row["most"] == 1
    queues = client.http.get("/api/v1/queues/status").raise_for_status().json()["queues"]
    assert {"summarize.openrouter", "probe.openrouter"} <= {each["queue"] for each in queues}
