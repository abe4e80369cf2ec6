"""The janitor's duties, rung for by periodiq and by hand."""

import re
from typing import Any

from dramatiq.message import Message
from pika.adapters.blocking_connection import BlockingChannel

from tests.support.engine.store_from_threads import held_up
from tests.support.installation import Windlass
from tests.support.servers.databases import ask, execute
from tests.support.waiting import wait_until


def ring_for(rhythm: str, channel: BlockingChannel) -> None:
    message: Message[None] = Message(queue_name="janitor", actor_name=rhythm, args=(), kwargs={}, options={})
    channel.basic_publish("", "janitor", message.encode())


def test_periodiq_s_ring_sweeps_what_no_timer_looks_at(stopped_windlass: Windlass, database_url: str) -> None:
    """A completion that went unnoticed: only the recheck of blocked tasks can unblock the child."""
    windlass = stopped_windlass
    windlass.start("api")
    windlass.wait_until_answering()
    client = windlass.client
    parent = client.submit(delay_seconds=3600)["task_id"]
    child = client.submit(depends_on=[parent])["task_id"]
    execute(database_url, f"UPDATE tasks SET status = 'completed', completed_at = now() WHERE task_id = '{parent}'")
    assert client.get(child)["status"] == "blocked"
    windlass.start("janitor")
    # It rings once a minute, and the first one may come before anybody hears it.
    assert client.wait_until(child, "queued", seconds=180)["status"] == "queued"


def test_whoever_ends_a_parent_of_many_wakes_the_janitor_to_tell_them(
    stopped_windlass: Windlass, database_url: str
) -> None:
    windlass = stopped_windlass
    windlass.start("api")
    windlass.start("janitor")
    windlass.wait_until_answering()
    client = windlass.client
    parent = client.submit(delay_seconds=3600)["task_id"]
    client.submit_many([{"depends_on": [parent]}] * 600)
    listens = """
        SELECT FROM pg_stat_activity
        WHERE datname = current_database() AND application_name LIKE 'windlass-janitor-listen %' AND query <> ''
    """
    wait_until("the janitor listens", lambda: ask(database_url, listens))
    client.http.post(f"/api/v1/tasks/{parent}/cancel").raise_for_status()
    waiting = "SELECT FROM tasks WHERE status = 'blocked' LIMIT 1"
    wait_until("all have been told", lambda: not ask(database_url, waiting))


def test_the_day_s_figures_are_kept(windlass: Windlass, channel: BlockingChannel) -> None:
    client = windlass.client
    for task_id in client.submit_many([{}, {"payload": {"outcome": "permanent"}}]):
        client.finished(task_id)
    ring_for("minute", channel)

    def figures() -> dict[str, Any] | None:
        """Of both ends: the minute may have ended, and figures been made, between the two."""
        items = client.http.get("/api/v1/stats").json()["items"]
        return next((item for item in items if (item["created"], item["completed"], item["failed"]) == (2, 1, 1)), None)

    today = wait_until("figures", figures)
    assert today["actor"] == "probe"
    assert today["error_rate"] == 0.5
    assert today["average_latency_seconds"] > 0


def test_told_to_stop_in_the_middle_of_a_duty_it_says_nothing_of_it(
    stopped_windlass: Windlass, database_url: str, channel: BlockingChannel
) -> None:
    windlass = stopped_windlass
    janitor = windlass.start("janitor")
    waits = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with held_up(database_url, "LOCK task_tallies IN ACCESS EXCLUSIVE MODE"):
        channel.queue_declare("janitor", durable=True, arguments={"x-queue-type": "classic"})
        ring_for("minute", channel)
        wait_until("a duty waits", lambda: ask(database_url, waits))
        janitor.terminate()
        assert janitor.wait(60) == 0
    assert "stopped" in windlass.log()
    assert not re.search("WARNING|ERROR|CRITICAL", windlass.log(), re.IGNORECASE), windlass.log()
