"""`windlass drill`: twenty probes, one of which kills its worker, and whether each was finished, once."""

import argparse
import time
from datetime import datetime
from typing import Any, Final
from uuid import uuid4

from windlass import Client, Event, Forbidden, NewTask, WaitTimeout
from windlass.services.cli import exit_codes
from windlass.services.cli.commands.arguments import Commands, seconds
from windlass.services.cli.display.tables import Facts
from windlass.services.cli.session import Session

PROBES: Final = 20
NOT_ALLOWED: Final = "a drill is for admins, where WINDLASS_PROBE_FAULTS is on, as in `make up`"


def add_commands(commands: Commands) -> None:
    parser = commands.add(
        "drill",
        drill,
        f"submit {PROBES} probes, one of which kills its worker, and judge what becomes of them",
        "windlass drill --within 300",
    )
    parser.add_argument("--within", type=seconds, default=180.0, metavar="SECONDS", help="give up after so long (180)")


def drill(session: Session, arguments: argparse.Namespace) -> int:
    client = session.client
    tag = f"drill-{uuid4().hex[:8]}"
    if not session.screen.as_json:
        session.screen.remark(f"{PROBES} probes, one of which kills its worker; they are tagged {tag}")
    try:
        accepted = client.submit_many(probes(tag))
    except Forbidden:
        session.screen.remark(f"windlass: {NOT_ALLOWED}")
        raise
    until = time.monotonic() + arguments.within
    patient = session.waiting_client()
    ended = [status_in_time(patient, task.task_id, until) for task in accepted]
    lives = [story(client, task.task_id) for task in accepted]
    report = {
        "tag": tag,
        "accepted": len(accepted),
        "finished": sum(status in {"completed", "dead"} for status in ended),
        "doubled": sum(ends > 1 for ends, _ in lives),
        "longest_wait_seconds": max((waited for _, waited in lives), default=0.0),
    }
    session.screen.show(report, report_facts(report))
    is_right = report["doubled"] == 0 and ended == ["dead", *["completed"] * (PROBES - 1)]
    return exit_codes.DONE if is_right else exit_codes.FAILED


def probes(tag: str) -> list[NewTask]:
    """The one that crashes is not tried again: a crash is all that it can do."""
    crash = {"seconds": 0.2, "outcome": "crash"}
    crashing: NewTask = {"actor": "probe", "payload": crash, "max_retries": 0, "tags": [tag]}
    plain: NewTask = {"actor": "probe", "payload": {"seconds": 0.2, "steps": 2}, "tags": [tag]}
    return [crashing, *[plain] * (PROBES - 1)]


def status_in_time(client: Client, task_id: str, until: float) -> str:
    try:
        return client.wait(task_id, timeout=max(0.0, until - time.monotonic())).status
    except WaitTimeout as error:
        return error.task.status


def story(client: Client, task_id: str) -> tuple[int, float]:
    """How often it was ended, and how long it waited for its first worker."""
    submitted: datetime | None = None
    waited: float | None = None
    ends = 0
    for event in client.events(task_id, types=("submit", "claim", "complete", "bury", "stall")):
        submitted = event.at if event.type == "submit" else submitted
        if event.type == "claim" and waited is None and submitted is not None:
            waited = (event.at - submitted).total_seconds()
        ends += event.type in {"complete", "bury"} or (event.type == "stall" and _is_dead(event))
    return ends, waited or 0.0


def _is_dead(event: Event) -> bool:
    return isinstance(event.data, dict) and event.data.get("status") == "dead"


def report_facts(report: dict[str, Any]) -> Facts:
    return Facts(
        [
            ("accepted", str(report["accepted"])),
            ("finished", str(report["finished"])),
            ("doubled", str(report["doubled"])),
            ("longest wait", f"{report['longest_wait_seconds']:.1f} s"),
            ("tag", report["tag"]),
        ]
    )
