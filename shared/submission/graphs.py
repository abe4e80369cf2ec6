"""A graph of tasks to be, by their keys: named well, named once, and without a circle."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

from pydantic import ConfigDict, Discriminator, Field, Tag, model_validator

from windlass.shared.actors.new_task import DEPENDENCY, ID, kind_of_dependency
from windlass.shared.forms import Form, at_most
from windlass.shared.references import FROM, POINTER
from windlass.shared.submission.refusal import Refused, Wrong
from windlass.shared.suggestions import meant
from windlass.shared.wording import Shaped

Key = Annotated[
    str,
    Shaped(
        r"^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,99}$",
        "must have 1 to 100 letters, digits, `_`, `.`, `:` or `-`, and begin with a letter, a digit or `_`",
    ),
]
"""Without brackets: `pages[3]` is what the fourth task for an element of `pages` is called."""

OWN_FIELDS = ("key", "depends_on", "for_each")
"""What a task has in a workflow alone, or otherwise than elsewhere."""

NOT_IN_A_WORKFLOW = {
    "workflow_id": "a task of a workflow is in that one",
    "user_id": "a workflow's tasks are its user's",
    "dedupe_key": "a workflow's tasks are its own; submit the workflow under an Idempotency-Key",
    "dedupe_ttl_seconds": "a workflow's tasks are its own; submit the workflow under an Idempotency-Key",
    "project_id": "a workflow's tasks are in no project",
    "webhook_url": "subscribe a webhook to `workflow.*`, or to `task.*` of the workflow",
}


class After(Form):
    """What a task waits for: another's completion, or its end in any way."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    key: Annotated[str, Field(min_length=1, max_length=100, description="A key of this workflow, or the id of a task.")]
    on: Literal["completed", "ended"] = "completed"


Wait = Annotated[Annotated[str, Tag(ID)] | Annotated[After, Tag(DEPENDENCY)], Discriminator(kind_of_dependency)]
"""A key or an id alone, or with what is waited for: what is wrong with it is said of the one that was meant."""


class Awaited(NamedTuple):
    """The same as everybody reads it, once it is known to be well said: a graph may have thousands."""

    key: str
    on: str


class ForEach(Form):
    """The list that becomes one task for each element."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    source: Annotated[str, Field(alias=FROM, description="The key of the task whose result has the list.")]
    path: Annotated[
        str,
        Field(description="A JSON pointer to it."),
        Shaped(POINTER.pattern.replace(r"\Z", "$"), "must be a JSON pointer, like /parts, or empty"),
    ] = ""


class Node(Form):
    """A task's place in the graph; the rest of it is a task as any other."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    key: Annotated[Key, Field(description="What the task is called in its workflow.")]
    depends_on: Annotated[list[Wait], Field(max_length=1000), at_most(1000)] = Field(default_factory=list)
    for_each: ForEach | None = None

    @model_validator(mode="after")
    def _each_once(self) -> "Node":
        if len(self.depends_on) > 1:
            counted = Counter(each.key for each in self.waits)
            twice = next((name for name, times in counted.items() if times > 1), None)
            if twice is not None:
                raise ValueError(f"depends on {twice} twice")
        return self

    @cached_property
    def waits(self) -> list[Awaited]:
        return [
            Awaited(each, "completed") if isinstance(each, str) else Awaited(each.key, each.on)
            for each in self.depends_on
        ]

    @cached_property
    def names(self) -> list[str]:
        """All that it comes after."""
        source = [] if self.for_each is None else [self.for_each.source]
        return list(dict.fromkeys([*source, *(each.key for each in self.waits)]))


def in_order(nodes: Sequence[Node]) -> list[int]:
    """Their places in an order in which each comes after all that it waits for. Raises Refused with the first things
    that are wrong: a key that is there twice, one that no task has, a circle."""
    places: dict[str, int] = {}
    for number, node in enumerate(nodes):
        places.setdefault(node.key, number)
    wrong = Refused("invalid-workflow", _wrong_keys(nodes, places))
    if wrong.wrong:
        raise wrong
    if all(places.get(name, -1) < number for number, node in enumerate(nodes) for name in node.names):
        return list(range(len(nodes)))  # as most are written, and then there is no circle either
    graph = {node.key: [name for name in node.names if name in places] for node in nodes}
    try:
        return [places[key] for key in TopologicalSorter(graph).static_order()]
    except CycleError as error:
        circle = list(reversed(error.args[1]))
        detail = f"they wait for each other in a circle: {' → '.join(circle)}"
        raise Refused("invalid-workflow", [Wrong(f"/tasks/{places[circle[0]]}/depends_on", detail)]) from error


def _wrong_keys(nodes: Sequence[Node], places: Mapping[str, int]) -> Iterator[Wrong]:
    for number, node in enumerate(nodes):
        if places[node.key] != number:
            detail = f"the key {node.key} is there twice: /tasks/{places[node.key]} has it, too"
            yield Wrong(f"/tasks/{number}/key", detail)
    for number, node in enumerate(nodes):
        yield from _unknown(number, node, places)


def _unknown(number: int, node: Node, places: Mapping[str, int]) -> Iterator[Wrong]:
    for place, entry in enumerate(node.depends_on):
        name, below = (entry.key, "/key") if isinstance(entry, After) else (entry, "")
        if name not in places and as_id(name) is None:
            detail = f"no task of this workflow has the key {name}; {meant(name, places)}"
            yield Wrong(f"/tasks/{number}/depends_on/{place}{below}", detail)
    source = None if node.for_each is None else node.for_each.source
    if source is not None and source not in places:
        detail = f"no task of this workflow has the key {source}; {meant(source, places)}"
        yield Wrong(f"/tasks/{number}/for_each/$from", detail)


def as_id(name: str) -> UUID | None:
    """A task outside of the workflow is named by its id."""
    try:
        return UUID(name)
    except ValueError:
        return None


def apart(task: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """A task as a workflow names it: its place in the graph, and the rest."""
    place = {name: task[name] for name in OWN_FIELDS if name in task}
    return place, {name: value for name, value in task.items() if name not in OWN_FIELDS}
