"""Schedules, webhooks and memory as a busy installation has them."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from tests.support.media_installation import Studio
from tests.support.waiting import wait_until
from tests.support.webhook_receiver import Receiver

CLOCKWORK = """
[network]
allow_private = ["127.0.0.1"]

[actors.webhook.retries]
other = [0.05, 0.05, 0.05, 0.05, 3600]

[schedules.backup-check]
cron = "0 4 * * 1-5"
timezone = "Europe/Berlin"
target = {task = {actor = "probe", provider = "archive", payload = {}}}
"""


def clockwork_at_work(house: Studio, receiver: Receiver) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Schedules and endpoints in every state, and a delivery of each kind, by what one would look for."""
    hooks, deliveries = webhooks_at_work(house, receiver)
    return schedules_at_work(house), hooks, deliveries


def schedules_at_work(house: Studio) -> dict[str, str]:
    """One with a past, one in whose way something is, one that failures and one that somebody paused, and one of the
    configuration."""
    subprocess.run(
        [sys.executable, "-m", "windlass.services.admin.register"], env=house.windlass.environment, check=True
    )
    quick: dict[str, Any] = {"actor": "probe", "tags": ["night"], "payload": {"seconds": 0}}
    slow = {**quick, "timeout_seconds": 7200, "payload": {"seconds": 3600}}
    dies = {**quick, "max_retries": 0, "payload": {"outcome": "permanent"}}
    made = {
        "past": a_schedule(house, "nightly digest", {"task": quick}, cron="30 2 * * *", timezone="Europe/Berlin"),
        "blocked": a_schedule(house, "index", {"task": slow}, every_seconds=7200, overlap="skip"),
        "failures": a_schedule(house, "import", {"task": dies}, cron="*/15 * * * *", pause_after_failures=1),
        "asked": a_schedule(
            house,
            "press review",
            {"workflow": {"name": "press review", "tasks": [{"key": "clippings", **quick}]}},
            cron="0 9 * * 1",
            timezone="America/New_York",
            catch_up="all",
            jitter_seconds=600,
        ),
    }
    now = datetime.now(UTC)
    past = {"from": (now - timedelta(days=24)).isoformat(), "to": now.isoformat()}
    tell(house, f"schedules/{made['past']}/backfill", **past)
    for name in ("blocked", "blocked", "failures"):
        tell(house, f"schedules/{made[name]}/trigger")
    wait_until("failures paused it", lambda: read(house, f"schedules/{made['failures']}")["state"] == "paused")
    tell(house, f"schedules/{made['asked']}/pause")
    return {**made, "declared": str(read(house, "schedules/backup-check")["schedule_id"])}


def a_schedule(house: Studio, name: str, target: dict[str, Any], **fields: Any) -> str:
    return str(tell(house, "schedules", name=name, target=target, **fields)["schedule_id"])


def webhooks_at_work(house: Studio, receiver: Receiver) -> tuple[dict[str, str], dict[str, str]]:
    """One that hears, one that fails, one that is gone, and one that somebody disabled."""
    receiver.answer("/broken", 500, b"<h1>Internal Server Error</h1> the database is away")
    receiver.answer("/moved", 410, b"gone for good")
    hooks = {
        "hears": an_endpoint(house, receiver, "/hears", ["workflow.*", "project.*"], description="the newsroom"),
        "failing": an_endpoint(house, receiver, "/broken", ["workflow.*", "approval.requested"]),
        "gone": an_endpoint(house, receiver, "/moved", ["workflow.completed"]),
        "disabled": an_endpoint(house, receiver, "/quiet", ["task.dead"], filter={"tag": "night"}),
    }
    for _ in range(3):
        body = {"name": "tidy", "tasks": [{"key": "only", "actor": "probe", "payload": {"seconds": 0}}]}
        tell(house, "workflows", **body)
    for name, state in (("failing", "failing"), ("gone", "gone")):
        wait_until(f"it is {state}", partial(stands, house, hooks[name], state))
    tell(house, f"webhooks/{hooks['disabled']}/disable")
    wait_until("it has heard", lambda: len(receiver.got("/hears")) >= 3)
    firsts = {name: read(house, f"webhooks/{hooks[name]}/deliveries")["items"][-1] for name in ("hears", "failing")}
    return hooks, {name: each["delivery_id"] for name, each in firsts.items()}


def an_endpoint(house: Studio, receiver: Receiver, path: str, events: list[str], **fields: Any) -> str:
    made = tell(house, "webhooks", url=receiver.at(path), events=events, **fields)
    receiver.secrets[path] = made["secret"]
    return str(made["webhook_id"])


def stands(house: Studio, webhook_id: str, state: str) -> bool:
    return bool(read(house, f"webhooks/{webhook_id}")["state"] == state)


def tell(house: Studio, path: str, **body: Any) -> Any:
    return house.client.http.post(f"/api/v1/{path}", json=body).raise_for_status().json()


def read(house: Studio, path: str) -> Any:
    return house.client.http.get(f"/api/v1/{path}").raise_for_status().json()
