"""Short scenes with workflows, for the mutations of them."""

import asyncio
import functools
from collections.abc import Callable
from typing import Any

import asyncpg
import httpx

from tests.chaos.workflows.witness import install_witness
from tests.support.installation import KEY
from tests.support.servers.databases import ask
from tests.support.waiting import wait_until
from windlass.shared.store.functions import named

ELEMENTS = ["a", "b", "c"]
LIST: list[dict[str, Any]] = [
    {"key": "list", "actor": "probe", "payload": {"result": ELEMENTS}},
    {"key": "pages", "actor": "probe", "for_each": {"$from": "list", "path": "/echo"},
     "payload": {"result": {"$item": True}}},
    {"key": "join", "actor": "probe", "depends_on": ["pages"], "payload": {"result": {"$from": "pages"}}},
]  # fmt: skip
ASKED: list[dict[str, Any]] = [{"key": "asked", "actor": "probe", "approval": {"message": "May it go on?"}}]
READY = "SELECT 1 FROM workflow_nodes WHERE workflow_id = $1::uuid AND ready_at IS NOT NULL"
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%expand_next%'"
COMPLETED = "SELECT task_id::text FROM tasks WHERE workflow_id = $1 AND status = 'completed'"
WAITING_FOR_A_WORD = "SELECT task_id::text FROM tasks WHERE workflow_id = $1 AND asked_at IS NOT NULL"
WAIT_SECONDS = 60
MOST_ELEMENTS = 1000


def submit(api_url: str, tasks: list[dict[str, Any]]) -> str:
    answer = post(api_url, "/workflows", json={"name": "a short one", "tasks": tasks})
    return str(answer.raise_for_status().json()["workflow_id"])


def post(api_url: str, path: str, **request: Any) -> httpx.Response:
    with httpx.Client(headers={"Authorization": f"Bearer {KEY}"}, timeout=30, trust_env=False) as http:
        return http.post(f"{api_url}/api/v1{path}", **request)


def expand_twice(api_url: str, database_url: str, *, pause: Callable[[], None], go_on: Callable[[], None]) -> None:
    """Two come at the same time to make tasks of one list, while the janitor is made to `pause`."""
    install_witness(database_url)
    pause()
    workflow_id = submit(api_url, LIST)
    wait_until("the list is there", lambda: ask(database_url, READY, workflow_id), seconds=WAIT_SECONDS, every=0.1)
    asyncio.run(_two_at_once(database_url, workflow_id))
    go_on()


async def _two_at_once(database_url: str, workflow_id: str) -> None:
    """Both have chosen it, and wait for the workflow, which a third has locked."""
    keeper, *both = [await asyncpg.connect(database_url) for _ in range(3)]
    try:
        async with keeper.transaction():
            await keeper.execute("SELECT 1 FROM workflows WHERE workflow_id = $1::uuid FOR UPDATE", workflow_id)
            expand = f"SELECT * FROM {named('expand_next')}({MOST_ELEMENTS})"
            calls = [asyncio.create_task(each.fetch(expand)) for each in both]
            # Asked by another connection: in a transaction the answer would stay the same.
            waits = functools.partial(_both_wait, database_url, len(both))
            await asyncio.to_thread(wait_until, "both wait", waits, seconds=WAIT_SECONDS, every=0.1)
        await asyncio.gather(*calls)
    finally:
        for connection in (keeper, *both):
            await connection.close()


def _both_wait(database_url: str, number: int) -> bool:
    return bool(ask(database_url, WAITING)[0][0] >= number)


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
