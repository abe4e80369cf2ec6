"""Workflows as a busy installation has them."""

from functools import partial
from typing import Any

from tests.browser.orders import a_workflow, flow, task_of
from tests.support.media_installation import Studio
from tests.support.waiting import wait_until


def workflows_at_work(house: Studio) -> tuple[dict[str, str], dict[str, str]]:
    """One in each state, one that asks a person, and a large one; and those of their tasks that are worth a look."""
    flows: dict[str, str] = {}
    short: dict[str, Any] = {"payload": {"seconds": 0}}
    long: dict[str, Any] = {"timeout_seconds": 7200, "payload": {"seconds": 3600, "steps": 6000}}
    dies: dict[str, Any] = {"max_retries": 0, "payload": {"outcome": "permanent"}}
    flows["completed"] = a_workflow(
        house,
        {"key": "clippings", "payload": {"result": {"pages": [*range(7)]}}},
        {
            "key": "digest",
            "for_each": {"$from": "clippings", "path": "/echo/pages"},
            "payload": {"result": {"$item": True}},
        },
        {"key": "review", "payload": {"result": {"$from": "digest"}}, "depends_on": ["digest"]},
        tags=["press", "spring"],
        name="press review",
    )
    flows["running"] = a_workflow(
        house,
        {"key": "outline", "payload": {"result": {"works": ["boat", "fox", "kite"], "title": "Harbour"}}},
        {**long, "key": "plates", "for_each": {"$from": "outline", "path": "/echo/works"}},
        {
            "key": "essay",
            "payload": {"result": {"$text": ["On ", {"$from": "outline", "path": "/echo/title"}]}},
            "depends_on": ["outline"],
        },
        {
            **short,
            "key": "print",
            "depends_on": ["essay"],
            "approval": {"message": "Send the essay to the printer?", "expires_in_seconds": 86400},
        },
        {**short, "key": "layout", "depends_on": ["plates", "print"]},
        {**short, "key": "tidy-up", "depends_on": [{"key": "layout", "on": "ended"}]},
        tags=["spring"],
        failure_threshold=2,
        name="exhibition catalogue",
    )
    flows["escalated"] = a_workflow(
        house,
        *({**(dies if name in {"letters", "maps"} else short), "key": name} for name in ("letters", "maps", "photos")),
        {**short, "key": "catalogue", "depends_on": ["letters", "maps", "photos"]},
        {**short, "key": "report", "depends_on": [{"key": "catalogue", "on": "ended"}]},
        failure_threshold=2,
        name="nightly import",
    )
    flows["failed"] = a_workflow(
        house,
        {**short, "key": "english"},
        {**dies, "key": "french", "depends_on": ["english"]},
        {**short, "key": "proofs", "depends_on": ["french"]},
        name="translation",
    )
    pages = [f"page-{number}" for number in range(1, 299)]
    flows["large"] = a_workflow(
        house,
        {**short, "key": "scan"},
        *(
            {**short, "key": key, "delay_seconds": 0 if key < "page-2" else 7200, "depends_on": ["scan"]}
            for key in pages
        ),
        {**short, "key": "bind", "depends_on": pages},
        name="archive of a year",
    )
    for status in ("completed", "escalated", "failed"):
        wait_until(f"one is {status}", partial(stands, house, flows[status], status))
    essay, asked = (task_of(house, flows["running"], key) for key in ("essay", "print"))
    wait_until("somebody is asked", lambda: house.client.get(asked)["approval"]["since"])
    return flows, {"asked": asked, "referring": essay}


def stands(house: Studio, workflow_id: str, status: str) -> bool:
    return bool(flow(house, workflow_id)["status"] == status)
