"""What a person types for an object: its id, the beginning of its id, or the name of a project or a workflow."""

import argparse
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Final, Self
from uuid import UUID

from windlass.client import calls
from windlass.client.call import Call
from windlass.client.errors import WindlassError
from windlass.client.memory import calls as memory
from windlass.client.projects import calls as projects
from windlass.client.schedules import calls as schedules
from windlass.client.task import Listing
from windlass.client.webhooks import calls as webhooks
from windlass.client.workflows import calls as workflows
from windlass.services.cli.display.texts import known

FEWEST: Final = 4
MOST_SHOWN: Final = 10
PAGE: Final = 500
SKEW: Final = timedelta(seconds=10)
"""How far the clock of the API, which makes the ids, may be from the clock of Postgres."""

BEGINNING: Final = re.compile(rf"[0-9a-f-]{{{FEWEST},36}}")
AN_ID: Final = "01a1e216-aa70-7000-8000-000000000000"

Given = dict[str, Any]
Ask = Callable[[Call[Any]], Any]


class NoSuchObject(WindlassError):
    """Nothing has this name, or an id that begins like this."""


class Ambiguous(WindlassError):
    """Several objects have this name, or ids that begin like this."""


@dataclass(frozen=True)
class Kind:
    """One kind of object: how it is called, which lists it may be found in, and which fields describe it."""

    noun: str
    field: str
    by_beginning: Callable[[Ask, str, Given], Iterable[Call[Any]]]
    shown: tuple[str, ...] = ("state",)
    by_name: Callable[[str], Iterable[Call[Any]]] | None = None
    """The lists that may have this name; the first that does counts."""
    has_uuids: bool = True
    names_in_api: bool = False
    """Whether the API takes names, too, and resolves them itself."""
    labelled: Callable[[str], Call[Any]] | None = None
    """The tasks that have this text as their label, where any text may be one. A label that tasks have stays as it is,
    and so does a text that is nothing else."""

    def read(self, text: str) -> str:
        """The argparse type: a whole id as it is, and anything else for `resolve`."""
        if not self.has_uuids:
            return Reference(text, self)
        try:
            return str(UUID(text))
        except ValueError:
            pass
        if not BEGINNING.fullmatch(text.lower()) and self.names_in_api:
            return text
        if not BEGINNING.fullmatch(text.lower()) and self.by_name is None:
            article = "an" if self.noun[0] in "aeiou" else "a"
            raise argparse.ArgumentTypeError(
                f"{text!r} is not the id of {article} {self.noun}; one looks like {AN_ID}, and its first characters "
                f"are enough ({FEWEST} or more)"
            )
        return Reference(text, self)


class Reference(str):
    """A text that is yet to be resolved to an id."""

    kind: Kind

    def __new__(cls, text: str, kind: Kind) -> Self:
        made = super().__new__(cls, text)
        made.kind = kind
        return made


def resolve(arguments: argparse.Namespace, ask: Ask) -> None:
    """Replaces all references of a command by ids. Items come last, because they are found in their project."""
    given = vars(arguments)
    texts = [value for value in given.values() if isinstance(value, Reference)]
    lists = [each for value in given.values() if isinstance(value, list) for each in value]
    references = [*texts, *(each for each in lists if isinstance(each, Reference))]
    for reference in sorted(references, key=lambda each: each.kind is ITEM):
        found = _found(reference, ask, given)
        for name, value in given.items():
            if value is reference:
                given[name] = found
            elif isinstance(value, list):
                given[name] = [found if each is reference else each for each in value]


def _found(reference: Reference, ask: Ask, given: Given) -> str:
    kind, text = reference.kind, str(reference)
    if kind.labelled is not None and ask(kind.labelled(text))["items"]:
        return text
    if kind.by_name is not None:
        for call in kind.by_name(text):
            if named := [each for each in _items(ask, call) if each["name"] == text]:
                return _only(kind, named, f"are called {text}; give the id of one:")
        if not BEGINNING.fullmatch(text.lower()):
            if kind.labelled is not None:
                return text
            raise NoSuchObject(f"no {kind.noun} is called {text}")
    beginning = text.lower() if kind.has_uuids else text
    everything = (each for call in kind.by_beginning(ask, beginning, given) for each in _items(ask, call))
    whole = "name" if kind.names_in_api else kind.field
    like_it = (each for each in everything if each[kind.field].startswith(beginning) or each[whole] == text)
    matching = list(islice(like_it, MOST_SHOWN + 1))
    if any(each[whole] == text for each in matching):
        return text
    if matching:
        return _only(kind, matching, f"have ids that begin with {text}; give more of the id:")
    if kind.names_in_api or kind.labelled is not None:
        return text
    called = f"is called {text}, and none has an id that" if kind.by_name is not None else "has an id that"
    raise NoSuchObject(f"no {kind.noun} {called} begins with {text}")


def _only(kind: Kind, found: list[Given], what: str) -> str:
    if len(found) == 1:
        whole: str = found[0][kind.field]
        return whole
    number = f"more than {MOST_SHOWN}" if len(found) > MOST_SHOWN else str(len(found))
    lines = [
        "  ".join(filter(None, (each[kind.field], *(known(each.get(name)) for name in kind.shown))))
        for each in found[:MOST_SHOWN]
    ]
    raise Ambiguous("\n  ".join((f"{number} {kind.noun}s {what}", *lines)))


def _items(ask: Ask, call: Call[Listing[Any]]) -> Iterator[Given]:
    while True:
        page = ask(call.with_params(limit=PAGE) if "limit" in call.params else call)
        yield from page["items"]
        if page.get("next_cursor") is None:
            return
        call = call.with_params(**{call.cursor: page["next_cursor"]})


def _created_like(beginning: str) -> dict[str, datetime]:
    """The time within which ids that begin like this were made: a UUIDv7 begins with its milliseconds."""
    digits = beginning.replace("-", "")[:12]
    first, last = (int(digits.ljust(12, filler), 16) / 1000 for filler in "0f")
    now = datetime.now(UTC)
    earliest = datetime.fromtimestamp(min(first, now.timestamp()), UTC)
    latest = datetime.fromtimestamp(min(last, now.timestamp()), UTC)
    return {"created_after": max(earliest, datetime(1971, 1, 1, tzinfo=UTC)) - SKEW, "created_before": latest + SKEW}


def _deliveries(ask: Ask, _beginning: str, _given: Given) -> Iterator[Call[Any]]:
    for webhook in _items(ask, webhooks.list_webhooks()):
        yield webhooks.deliveries(webhook["webhook_id"])


TASK: Final = Kind(
    "task",
    "task_id",
    lambda _ask, beginning, _given: [calls.list_tasks({}).with_params(**_created_like(beginning))],
    shown=("status", "queue"),
)
PROJECT: Final = Kind(
    "project",
    "project_id",
    lambda *_: [projects.list_projects(), projects.list_projects(archived=True)],
    shown=("name",),
    by_name=lambda name: [projects.list_projects(q=name), projects.list_projects(q=name, archived=True)],
)
WORKFLOW: Final = Kind(
    "workflow",
    "workflow_id",
    lambda _ask, beginning, _given: [workflows.list_workflows({}).with_params(**_created_like(beginning))],
    shown=("status", "name"),
    by_name=lambda name: [workflows.list_workflows({"name": name})],
)
PROJECT_LABEL: Final = replace(
    PROJECT, labelled=lambda label: calls.list_tasks({"project_id": label}).with_params(limit=1)
)
WORKFLOW_LABEL: Final = replace(
    WORKFLOW, labelled=lambda label: calls.list_tasks({"workflow_id": label}).with_params(limit=1)
)
ITEM: Final = Kind(
    "item",
    "item_id",
    lambda _ask, _beginning, given: [projects.items(given["project_id"])],
    shown=("state", "title"),
)
WEBHOOK: Final = Kind("webhook", "webhook_id", lambda *_: [webhooks.list_webhooks()], shown=("state", "url"))
DELIVERY: Final = Kind("delivery", "delivery_id", _deliveries, shown=("state", "type"))
EVENT: Final = Kind("agent event", "event_id", lambda *_: [memory.events({})], shown=("status", "title"))
MODEL: Final = Kind("embedding model", "model_id", lambda *_: [memory.models()], shown=("state", "name"))
JOB: Final = Kind("embedding job", "job_id", lambda *_: [memory.jobs()])
WORKER: Final = Kind("worker", "worker_id", lambda *_: [calls.workers()], has_uuids=False)
KEY: Final = Kind("key", "key_id", lambda *_: [calls.keys()], shown=("role", "user_id"), has_uuids=False)
SCHEDULE: Final = Kind(
    "schedule",
    "schedule_id",
    lambda *_: [schedules.list_schedules()],
    shown=("name",),
    names_in_api=True,
)
