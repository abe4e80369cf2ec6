"""Short scenes with workflows, for the mutations of them."""

import functools
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import httpx

from tests.chaos.workflows.held_place import HeldPlace, Place
from tests.chaos.workflows.witness import install_witness
from tests.support.installation import KEY
from tests.support.servers.databases import ask
from tests.support.waiting import wait_until

ELEMENTS = ["a", "b", "c"]
LIST: list[dict[str, Any]] = [
    {"key": "list", "actor": "probe", "payload": {"result": ELEMENTS}},
    {"key": "pages", "actor": "probe", "for_each": {"$from": "list", "path": "/echo"},
     "payload": {"result": {"$item": True}}},
    {"key": "join", "actor": "probe", "depends_on": ["pages"], "payload": {"result": {"$from": "pages"}}},
]  # fmt: skip
ASKED: list[dict[str, Any]] = [{"key": "asked", "actor": "probe", "approval": {"message": "May it go on?"}}]
EXPANDED = Place("tasks", "INSERT", "NEW.workflow_key = 'pages[1]'")
COMPLETED = "SELECT task_id::text FROM tasks WHERE workflow_id = $1 AND status = 'completed'"
WAITING_FOR_A_WORD = "SELECT task_id::text FROM tasks WHERE workflow_id = $1 AND asked_at IS NOT NULL"
WAIT_SECONDS = 60
SECOND_SECONDS = 5
"""For the second to come to the same place."""


def submit(api_url: str, tasks: list[dict[str, Any]]) -> str:
    answer = post(api_url, "/workflows", json={"name": "a short one", "tasks": tasks})
    return str(answer.raise_for_status().json()["workflow_id"])


def get(api_url: str, path: str) -> httpx.Response:
    with httpx.Client(headers={"Authorization": f"Bearer {KEY}"}, timeout=30, trust_env=False) as http:
        return http.get(f"{api_url}/api/v1{path}")


def post(api_url: str, path: str, **request: Any) -> httpx.Response:
    with httpx.Client(headers={"Authorization": f"Bearer {KEY}"}, timeout=30, trust_env=False) as http:
        return http.post(f"{api_url}/api/v1{path}", **request)


def expand_twice(api_url: str, database_url: str) -> None:
    """The orchestrator is halted while it submits the tasks of a list, and a GET handles the same rows. In an engine
    that is not broken the GET waits for the orchestrator."""
    install_witness(database_url)
    with HeldPlace(database_url, EXPANDED) as held, ThreadPoolExecutor(1) as threads:
        workflow_id = submit(api_url, LIST)
        first = held.wait_for("windlass-orchestrator")
        reading = threads.submit(get, api_url, f"/workflows/{workflow_id}")
        with suppress(AssertionError):
            held.wait_for("windlass-api", seconds=SECOND_SECONDS)
        held.let_go(first, undone=False)
        reading.result(WAIT_SECONDS)


def submit_lists(api_url: str, database_url: str) -> None:
    install_witness(database_url)
    for _ in range(3):
        submit(api_url, LIST)


def revive_what_completed(api_url: str, database_url: str) -> None:
    """Its owner asks for one more life of each, and is refused by an engine that is whole."""
    install_witness(database_url)
    workflow_id = submit(api_url, LIST)
    everything = len(LIST) - 1 + len(ELEMENTS)
    is_done = functools.partial(_all_have_completed, database_url, workflow_id, everything)
    for (task_id,) in wait_until("all have completed", is_done, seconds=WAIT_SECONDS, every=0.1):
        post(api_url, f"/tasks/{task_id}/retry")


def _all_have_completed(database_url: str, workflow_id: str, number: int) -> list[Any]:
    found = ask(database_url, COMPLETED, workflow_id)
    return found if len(found) == number else []


def decide_twice(api_url: str, database_url: str) -> None:
    """One after the other; the second is told that it was done."""
    install_witness(database_url)
    workflow_id = submit(api_url, ASKED)
    asked = functools.partial(ask, database_url, WAITING_FOR_A_WORD, workflow_id)
    ((task_id,),) = wait_until("somebody is asked", asked, seconds=WAIT_SECONDS, every=0.1)
    for _ in range(2):
        post(api_url, f"/tasks/{task_id}/approve")
