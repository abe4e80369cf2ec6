"""Lanes: new work and retries share a provider's slots 70 to 30, one start at a time too."""

from tests.support.installation import Windlass
from tests.support.servers.databases import ask

PROVIDER = "one-by-one"
PICKS = 20


def test_of_twenty_single_starts_six_are_retries(windlass: Windlass, database_url: str) -> None:
    client = windlass.client
    failing = {"provider": PROVIDER, "payload": {"outcome": "permanent"}}
    dead = client.submit_many([failing] * PICKS)
    for task_id in dead:
        assert client.finished(task_id)["status"] == "dead"

    client.change_provider(PROVIDER, limit=0)
    for task_id in dead:
        assert client.retry(task_id).json()["lane"] == "retry"
    fresh = client.submit_many([{"provider": PROVIDER}] * PICKS)
    (began,) = ask(database_url, "SELECT clock_timestamp()")[0]
    client.change_provider(PROVIDER, limit=1)
    for task_id in dead + fresh:
        client.finished(task_id)

    rows = ask(database_url, "SELECT lane FROM tasks WHERE started_at > $1 ORDER BY started_at", began)
    assert len(rows) == 2 * PICKS
    lanes = [row["lane"] for row in rows]
    assert lanes[:PICKS].count("retry") == PICKS * 30 // 100
    assert lanes[:10].count("retry") == 3, "and evenly, not the retries at the end"
