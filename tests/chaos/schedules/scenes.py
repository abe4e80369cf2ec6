"""Two short scenes with a schedule, for the mutations of how often it fires and of what it writes down."""

import httpx

from tests.chaos.schedules.witness import install_witness, send_to_sleep
from tests.chaos.site.installation import Installation
from tests.support.installation import KEY
from tests.support.servers.databases import ask
from tests.support.waiting import wait_until

WAIT_SECONDS = 90
SCHEDULE = {"every_seconds": 10, "overlap": "allow", "catch_up": "all", "target": {"task": {"actor": "probe"}}}
STARTED = "SELECT 1 FROM schedule_runs WHERE schedule_id = $1::text::uuid AND outcome = 'started'"
SLOW = {**SCHEDULE, "overlap": "skip", "target": {"task": {"actor": "probe", "payload": {"seconds": 16}}}}
BEHIND = """
    SELECT 1 FROM schedules s WHERE s.schedule_id = $1::text::uuid AND s.last_due_at > (
        SELECT min(r.due_at) FROM schedule_runs r WHERE r.schedule_id = s.schedule_id)
"""
LOOKED_AT = "SELECT 1 FROM schedules WHERE schedule_id = $1::text::uuid AND next_at > clock_timestamp()"


def let_times_come_again(installation: Installation) -> None:
    """A due time that was started is due once more: somebody's clock, or a planner, has gone back."""
    url = installation.database_url
    install_witness(url)
    with httpx.Client(
        base_url=installation.api_url, headers={"Authorization": f"Bearer {KEY}"}, timeout=30, trust_env=False
    ) as http:
        made = http.put("/api/v1/schedules/again", json=SCHEDULE).raise_for_status().json()
        schedule_id = made["schedule_id"]
        wait_until("it has started", lambda: ask(url, STARTED, schedule_id), seconds=WAIT_SECONDS, every=0.2)
        send_to_sleep(url, schedule_id, 1)
        wait_until("it was looked at", lambda: ask(url, LOOKED_AT, schedule_id), seconds=WAIT_SECONDS, every=0.2)
        http.delete(f"/api/v1/schedules/{schedule_id}").raise_for_status()


def let_a_time_be_skipped(installation: Installation) -> None:
    """What the first has started lasts longer than the second takes to come."""
    url = installation.database_url
    install_witness(url)
    with httpx.Client(
        base_url=installation.api_url, headers={"Authorization": f"Bearer {KEY}"}, timeout=30, trust_env=False
    ) as http:
        schedule_id = http.put("/api/v1/schedules/slow", json=SLOW).raise_for_status().json()["schedule_id"]
        wait_until("another time is over", lambda: ask(url, BEHIND, schedule_id), seconds=WAIT_SECONDS, every=0.2)
        http.delete(f"/api/v1/schedules/{schedule_id}").raise_for_status()
