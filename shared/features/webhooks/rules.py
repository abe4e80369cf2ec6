"""Which events a move is, which endpoints receive an event, and whether a delivery may be sent: pure functions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from windlass.shared.webhook_states import EndpointState, Scope

ENDS = ("completed", "dead", "cancelled")
TEST = "webhook.test"
DISABLED = "webhook.disabled"
APPROVAL_REQUESTED = "approval.requested"


@dataclass(frozen=True)
class Event:
    """Something that endpoints can receive, and what filters and rights are compared with."""

    type: str
    subject: str
    """The id of the task, project, workflow, schedule or webhook, or the name of the provider."""
    seq: int
    at: datetime
    owner: str | None
    """The user whose object it is; none for a provider."""
    about: Mapping[str, Any]
    """What filters can name: `project_id`, `workflow_id`, `actor` and `tags`."""
    data: Mapping[str, Any]
    life: int = 1
    named: UUID | None = None
    """The endpoint that the task names. It receives the event whatever it subscribes to."""
    only_named: bool = False
    """No other endpoint receives it."""


@dataclass(frozen=True)
class Rights:
    """What the unexpired keys of a user allow it to read."""

    everything: bool = False
    its_own: bool = False


class Endpoint(Protocol):
    """What decides whether an endpoint receives an event."""

    @property
    def webhook_id(self) -> UUID: ...
    @property
    def user_id(self) -> str: ...
    @property
    def scope(self) -> str: ...
    @property
    def events(self) -> Sequence[str]: ...
    @property
    def filter(self) -> Mapping[str, Any]: ...
    @property
    def created_at(self) -> datetime: ...


def event_type(move: str, status: str) -> str | None:
    """The event that a move of a task is, if it is one."""
    if move == "ask":
        return APPROVAL_REQUESTED
    is_event = status in ENDS or (status == "retrying" and move in ("retry", "stall"))
    return f"task.{status}" if is_event else None


def is_subscribed(events: Sequence[str], type_: str) -> bool:
    """By its name, or as one of its kind."""
    return type_ in events or f"{type_.partition('.')[0]}.*" in events


def may_read(rights: Rights, reader: str, owner: str | None) -> bool:
    """Whether a user's keys allow it to read about an object of `owner`."""
    return rights.everything or (rights.its_own and owner == reader)


def passes(wanted: Mapping[str, Any], about: Mapping[str, Any]) -> bool:
    """Whether an event matches a filter."""
    is_same = all(wanted[name] == about.get(name) for name in ("project_id", "workflow_id", "actor") if name in wanted)
    return is_same and ("tag" not in wanted or wanted["tag"] in (about.get("tags") or ()))


def receives(endpoint: Endpoint, event: Event, rights: Rights) -> bool:
    """The endpoint is not deleted. One that was created after the event does not receive it, unless the task names
    it."""
    if not may_read(rights, endpoint.user_id, event.owner):
        return False
    if endpoint.webhook_id == event.named:
        return True
    if event.type == DISABLED and event.subject == str(endpoint.webhook_id):
        return False
    return (
        not event.only_named
        and is_subscribed(endpoint.events, event.type)
        and endpoint.created_at <= event.at
        and (endpoint.scope == Scope.ALL or endpoint.user_id == event.owner)
        and passes(endpoint.filter, event.about)
    )


def is_held(state: str, type_: str, *, is_oldest: bool, is_probing: bool = False) -> bool:
    """Whether a delivery waits for its endpoint. At a failing endpoint the oldest is tried, and so is that of a
    disabled one while it is probed. A test is always sent."""
    if state == EndpointState.ENABLED or type_ == TEST:
        return False
    return not (is_oldest and (state == EndpointState.FAILING or is_probing))


def lost_right(rights: Rights) -> str:
    """Why an endpoint is disabled whose owner's keys do not allow it any more."""
    has_key = rights.everything or rights.its_own
    return "its owner is no admin any more" if has_key else "its owner has no key any more"
