"""Tasks to be and how they follow each other: `translate.s(text="hi") | polish.s()`, `group([…]) | join.s()`."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Unpack, cast

from windlass.client.declared import Declared, name_of, required_of
from windlass.client.options import After, AskFirst, TaskId
from windlass.client.workflows.options import NodeOptions, WorkflowHead
from windlass.client.workflows.references import Result

if TYPE_CHECKING:
    from windlass.client.workflows.documents import Workflow

Waits = Sequence["Signature | Ended | TaskId | After"]


class Composition(ABC):
    """Tasks and who of them waits for whom; `|` puts another one behind it."""

    @property
    @abstractmethod
    def heads(self) -> tuple["Signature", ...]:
        """What begins it."""

    @property
    @abstractmethod
    def outcome(self) -> Any:
        """What whoever comes next is given: a result, or a list of them."""

    @property
    @abstractmethod
    def ends(self) -> tuple["Signature", ...]:
        """What whoever comes next waits for."""

    @abstractmethod
    def signatures(self) -> Iterator["Signature"]:
        """All its tasks, each after all that come before it; one that stands at two places comes twice."""

    @abstractmethod
    def links(self) -> Iterator["Link"]:
        """Who waits for whom."""

    def __or__(self, other: "Composition | Declared[Any]") -> "Chain":
        return Chain(self, composed(other))

    def send(self, name: str | None = None, **head: Unpack[WorkflowHead]) -> "Workflow":
        """Submits it as a workflow, and returns that, stored for good.

        Where it goes is said by WINDLASS_URL and WINDLASS_API_KEY, else by the `windlass up` that runs on this
        directory; `client.workflows.submit(name, …)` is for any other.
        """
        from windlass.client.default import default_client  # noqa: PLC0415 - it knows workflows, too

        return default_client().workflows.submit(name or self.title, self, **head)

    @property
    def title(self) -> str:
        """A name for who gives none."""
        actors = list(dict.fromkeys(each.actor for each in self.signatures()))
        return " | ".join(actors)[:200]


@dataclass(frozen=True)
class Link:
    """`later` waits for what `earlier` comes to, and gets it in the field that it still wants."""

    earlier: Composition
    later: "Signature"


@dataclass(frozen=True)
class Ended:
    """The end of a task in any way, also by failure."""

    task: "Signature"


@dataclass(frozen=True, eq=False)
class Signature(Composition):
    """A task to be. `result` stands for what it will have returned, in the payloads of others; `ended` in their
    `depends_on` means its end in any way."""

    actor: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    """The fields that its actor cannot do without, as far as that is known."""
    key: str | None = None
    depends_on: Waits = ()
    for_each: Result | None = None
    approval: AskFirst | None = None
    options: NodeOptions = field(default_factory=NodeOptions)

    @property
    def label(self) -> str:
        return self.key or self.actor

    @property
    def result(self) -> Any:
        """Stands for the result: `draft.result["summary"]`. Whoever refers to it depends on this task."""
        return Result(self)

    @property
    def ended(self) -> Ended:
        return Ended(self)

    def set(
        self,
        *,
        key: str | None = None,
        depends_on: Waits = (),
        for_each: Any = None,
        approval: str | AskFirst | None = None,
        **options: Unpack[NodeOptions],
    ) -> "Signature":
        """The same with options: `translate.s(text="hi").set(priority=1, approval="Shall it be sent?")`. It is another
        one: refer to what this returns."""
        return replace(
            self,
            key=key or self.key,
            depends_on=(*self.depends_on, *depends_on),
            for_each=self.for_each if for_each is None else listed(for_each),
            approval=asking(approval) or self.approval,
            options=cast(NodeOptions, {**self.options, **options}),
        )

    @property
    def heads(self) -> tuple["Signature", ...]:
        return (self,)

    @property
    def outcome(self) -> Any:
        return self.result

    @property
    def ends(self) -> tuple["Signature", ...]:
        return (self,)

    def signatures(self) -> Iterator["Signature"]:
        yield self

    def links(self) -> Iterator[Link]:
        return iter(())

    def __repr__(self) -> str:
        return f"<task {self.label}>"


@dataclass(frozen=True, eq=False)
class Chain(Composition):
    """One after the other."""

    first: Composition
    then: Composition

    @property
    def heads(self) -> tuple[Signature, ...]:
        return self.first.heads

    @property
    def outcome(self) -> Any:
        return self.then.outcome

    @property
    def ends(self) -> tuple[Signature, ...]:
        return self.then.ends

    def signatures(self) -> Iterator[Signature]:
        yield from self.first.signatures()
        yield from self.then.signatures()

    def links(self) -> Iterator[Link]:
        yield from self.first.links()
        yield from self.then.links()
        yield from (Link(self.first, head) for head in self.then.heads)


@dataclass(frozen=True, eq=False)
class Group(Composition):
    """Beside each other; who comes next waits for all, and gets their results as a list in this order."""

    members: tuple[Composition, ...]

    @property
    def heads(self) -> tuple[Signature, ...]:
        return tuple(head for each in self.members for head in each.heads)

    @property
    def outcome(self) -> Any:
        return [each.outcome for each in self.members]

    @property
    def ends(self) -> tuple[Signature, ...]:
        return tuple(end for each in self.members for end in each.ends)

    def signatures(self) -> Iterator[Signature]:
        for each in self.members:
            yield from each.signatures()

    def links(self) -> Iterator[Link]:
        for each in self.members:
            yield from each.links()


def group(members: Iterable[Composition | Declared[Any]]) -> Group:
    """Tasks beside each other: `group([translate.s(text="hi"), translate.s(text="ho")]) | join`."""
    gathered = tuple(composed(each) for each in members)
    if not gathered:
        raise ValueError("a group of nothing: nobody could wait for it")
    return Group(gathered)


def signature(
    actor: str | Declared[Any],
    payload: Mapping[str, Any] | None = None,
    *,
    key: str | None = None,
    depends_on: Waits = (),
    for_each: Any = None,
    approval: str | AskFirst | None = None,
    **options: Unpack[NodeOptions],
) -> Signature:
    """A task to be, by its actor's name: `signature("summarize", {"content": "…"}, priority=1)`."""
    return Signature(
        name_of(actor),
        dict(payload or {}),
        () if isinstance(actor, str) else required_of(actor),
        key,
        tuple(depends_on),
        listed(for_each),
        asking(approval),
        options,
    )


def composed(other: Composition | Declared[Any]) -> Composition:
    """An actor without a word is a call without arguments."""
    if isinstance(other, Composition):
        return other
    if isinstance(other, str):
        raise TypeError(f"say signature({other!r}) for an actor by its name")
    return signature(other)


def listed(for_each: Any) -> Result | None:
    if for_each is None or isinstance(for_each, Result):
        return for_each
    raise TypeError("for_each takes a list out of a result, as `split.result[\"parts\"]`; a list that is there already "
                    "is a loop, or a group")  # fmt: skip


def asking(approval: str | AskFirst | None) -> AskFirst | None:
    return {"message": approval} if isinstance(approval, str) else approval
