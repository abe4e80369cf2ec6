"""Every call about projects: its path, what it takes and what it answers."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal
from uuid import uuid4

from windlass.client.call import Call
from windlass.client.calls import API, STILL_IN_FLIGHT, named, without_none
from windlass.client.projects.documents import (
    BatchAnswers,
    ForceStopped,
    Item,
    Items,
    ItemState,
    Mode,
    OnFailure,
    Project,
    ProjectEvent,
    ProjectQueue,
    ProjectRun,
    QueueState,
    Stopped,
)
from windlass.client.projects.options import ItemFields, ItemId, NewItem, ProjectChange, ProjectId
from windlass.client.task import Listing

PROJECTS: Final = f"{API}/projects"
PROOF_SECONDS: Final = 30.0

BatchAction = Literal["run", "stop", "force-stop"]


def create(
    name: str, defaults: ItemFields | None, on_failure: OnFailure, user_id: str | None, idempotency_key: str | None
) -> Call[Project]:
    """Always with an Idempotency-Key, so that it can be repeated until it is known to be stored."""
    body = {"name": name, "defaults": defaults or {}, "on_failure": on_failure, **without_none({"user_id": user_id})}
    headers = {"Idempotency-Key": idempotency_key or uuid4().hex}
    return Call("POST", PROJECTS, Project, body=body, headers=headers, repeated_on=STILL_IN_FLIGHT)


def list_projects(
    states: Sequence[QueueState] = (), *, archived: bool = False, q: str | None = None, page_size: int | None = None
) -> Call[Listing[Project]]:
    params = {"state": list(states) or None, "archived": archived or None, "q": q, "limit": page_size}
    return Call("GET", PROJECTS, Listing[Project], params=params)


def get(project_id: ProjectId) -> Call[Project]:
    return Call("GET", _project(project_id), Project)


def change(project_id: ProjectId, changes: ProjectChange) -> Call[Project]:
    return Call("PATCH", _project(project_id), Project, body=dict(changes))


def archive(project_id: ProjectId, reason: str | None = None) -> Call[Project]:
    return Call("DELETE", _project(project_id), Project, params={"reason": reason})


def add(project_id: ProjectId, items: Sequence[NewItem]) -> Call[Items]:
    """Not repeated: they could be in the backlog twice."""
    body = {"items": [without_none(item) for item in items]}
    return Call("POST", f"{_project(project_id)}/items", Items, body=body, repeatable=False)


def items(project_id: ProjectId, states: Sequence[ItemState] = (), page_size: int | None = None) -> Call[Listing[Item]]:
    params = {"state": list(states) or None, "limit": page_size}
    return Call("GET", f"{_project(project_id)}/items", Listing[Item], params=params)


def item(project_id: ProjectId, item_id: ItemId) -> Call[Item]:
    return Call("GET", _item(project_id, item_id), Item)


def change_item(project_id: ProjectId, item_id: ItemId, changes: Mapping[str, Any]) -> Call[Item]:
    return Call("PATCH", _item(project_id, item_id), Item, body=dict(changes))


def move(project_id: ProjectId, item_id: ItemId, before: ItemId | None, after: ItemId | None) -> Call[Item]:
    if (before is None) == (after is None):
        raise ValueError("say before which item it is to stand, or after which")
    return change_item(project_id, item_id, without_none({"before": before, "after": after}))


def skip(project_id: ProjectId, item_id: ItemId, reason: str | None = None) -> Call[Item]:
    return Call("POST", f"{_item(project_id, item_id)}/skip", Item, body=without_none({"reason": reason}))


def requeue(project_id: ProjectId, item_id: ItemId, reason: str | None = None) -> Call[Item]:
    """Not repeated: a second one could come when the item has been run again."""
    body = without_none({"reason": reason})
    return Call("POST", f"{_item(project_id, item_id)}/requeue", Item, body=body, repeatable=False)


def delete_item(project_id: ProjectId, item_id: ItemId) -> Call[bytes]:
    """Not repeated: a second one would not find it."""
    return Call("DELETE", _item(project_id, item_id), bytes, is_raw=True, repeatable=False)


def run(project_id: ProjectId, mode: Mode, item_id: ItemId | None, reason: str | None) -> Call[ProjectQueue]:
    """Not repeated: a second one could start another run."""
    body = {"mode": mode, **without_none({"item_id": item_id, "reason": reason})}
    return Call("POST", f"{_project(project_id)}/run", ProjectQueue, body=body, repeatable=False)


def stop(project_id: ProjectId, reason: str | None = None) -> Call[Stopped]:
    return Call("POST", f"{_project(project_id)}/queue/stop", Stopped, body=without_none({"reason": reason}))


def force_stop(project_id: ProjectId, wait: float = PROOF_SECONDS, reason: str | None = None) -> Call[ForceStopped]:
    path, body = f"{_project(project_id)}/queue/force-stop", without_none({"reason": reason})
    return Call("POST", path, ForceStopped, params={"wait": wait}, body=body, held_back_seconds=wait)


def status(project_id: ProjectId) -> Call[ProjectQueue]:
    return Call("GET", f"{_project(project_id)}/queue/status", ProjectQueue)


def events(project_id: ProjectId, after: int = 0, page_size: int | None = None) -> Call[Listing[ProjectEvent]]:
    params = {"after": after, "limit": page_size}
    return Call("GET", f"{_project(project_id)}/events", Listing[ProjectEvent], params=params, cursor="after")


def runs(project_id: ProjectId, page_size: int | None = None) -> Call[Listing[ProjectRun]]:
    return Call("GET", f"{_project(project_id)}/runs", Listing[ProjectRun], params={"limit": page_size})


def batch(
    action: BatchAction, project_ids: Sequence[ProjectId], mode: Mode, wait: float, reason: str | None
) -> Call[BatchAnswers]:
    body = {"action": action, "project_ids": list(project_ids), "mode": mode, **without_none({"reason": reason})}
    held_back = wait if action == "force-stop" else 0
    return Call(
        "POST",
        f"{PROJECTS}/batch",
        BatchAnswers,
        params={"wait": wait},
        body=body,
        repeatable=action != "run",
        held_back_seconds=held_back,
    )


def stream_path(project_id: ProjectId) -> str:
    return f"{_project(project_id)}/queue/stream"


def _project(project_id: ProjectId) -> str:
    return f"{PROJECTS}/{named(str(project_id))}"


def _item(project_id: ProjectId, item_id: ItemId) -> str:
    return f"{_project(project_id)}/items/{named(str(item_id))}"
