"""What was seen from outside while a storm went over Windlass: what the checker judges by, beside the rows."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.chaos.projects.record import ProjectsRecord
from tests.chaos.schedules.record import SchedulesRecord
from tests.chaos.webhooks.record import WebhooksRecord
from tests.chaos.workflows.record import WorkflowsRecord


@dataclass(frozen=True)
class Accepted:
    """A task that the api has said yes to; `at` is the wall clock's time, as everywhere here."""

    task_id: str
    actor: str
    provider: str
    at: float
    mark: str
    """A word that stands in the payload of this task alone, so that a provider's books tell whose an order is."""


@dataclass(frozen=True)
class Revived:
    """A life that was asked for after the first: `retry` was answered with yes."""

    task_id: str
    at: float


@dataclass(frozen=True)
class Fault:
    """Something that was done to the installation, and when it was over."""

    number: int
    words: str
    began_at: float
    ended_at: float
    is_host_wide: bool = False
    """Worker and guardian stood still together: nobody on that host could keep a promise meanwhile."""
    hides_hang_ups: bool = False
    """Connections to the providers were held up or swallowed: the other side could not see that a client had gone."""


@dataclass(frozen=True)
class LimitChange:
    """Between the two moments either limit may have been in force."""

    provider: str
    limit: int | None
    asked_at: float
    done_at: float


@dataclass(frozen=True)
class StreamRead:
    """All that one client saw of one task's events, over all of its connections, in the order that it came."""

    task_id: str
    seqs: Sequence[int]
    types: Sequence[str]
    connections: int
    is_whole: bool
    """The server has said that this was the end."""


@dataclass(frozen=True)
class ManyRead:
    """What one client of the many-task stream saw: everything from its first mark's submit to its last mark's end."""

    first_mark: str
    """A task that was submitted when the stream was open."""
    last_mark: str
    """A task whose end was the last thing that the client waited for."""
    events: Sequence[tuple[str, int]]
    """Task and seq, in the order that they came."""
    connections: int
    is_whole: bool = True
    """It has seen its last mark's end; else it was sent home before."""


@dataclass
class Sighting:
    """A process that said by its environment which task it works for, and when it was first and last seen alive."""

    pid: int
    task_id: str
    first_at: float
    last_at: float


@dataclass
class Record:
    """Filled by the storm's clients and by whoever does the harm; each list only grows."""

    accepted: dict[str, Accepted] = field(default_factory=dict)
    revived: list[Revived] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    limit_changes: list[LimitChange] = field(default_factory=list)
    streams: list[StreamRead] = field(default_factory=list)
    many_streams: list[ManyRead] = field(default_factory=list)
    sightings: list[Sighting] = field(default_factory=list)
    broken_words: list[tuple[str, str]] = field(default_factory=list)
    """What the api itself said wrongly to a client: a task (or none) and the words, such as two tasks for one key."""
    oddities: list[str] = field(default_factory=list)
    """Answers that no client had expected; told, and not judged."""
    projects: ProjectsRecord = field(default_factory=ProjectsRecord)
    workflows: WorkflowsRecord = field(default_factory=WorkflowsRecord)
    webhooks: WebhooksRecord = field(default_factory=WebhooksRecord)
    schedules: SchedulesRecord = field(default_factory=SchedulesRecord)
    books_of_steps: Path | None = None
    """Where those who work in steps write down each run of one."""
    books: dict[str, Any] = field(default_factory=dict)
    """What the fake provider server had written down at the end, by provider."""
