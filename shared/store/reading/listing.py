"""Lists of tasks, newest first, by any combination of filters, at the same price however long the history is.

Every terminal state is a branch of its own, an ordered scan of the index that fits the filter, and stops when the page
is full. Where no index has that order, all states are looked up at once and sorted. Tags have a table of their own,
where the tasks of each stand in that order. What lives is one branch more; of a provider or an actor it is three, for
what waits is found by its queues, what runs is few, and what is blocked is counted. The statements differ from call to
call, and which index is best depends on the values: run them on a pool that plans each one anew
(`db.open_reading_pool`).
"""

from collections.abc import Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.filters import Filter
from windlass.shared.sql_fragments import FINISHED, HAS_TEXT, SEARCHED_TEXT, words
from windlass.shared.states import LIVE, TERMINAL, WAITING, State
from windlass.shared.store.reading.by_queue import SOME_BLOCKED, queues_of
from windlass.shared.store.record import Record, fetch
from windlass.shared.store.rows import TaskRow
from windlass.shared.store.tasks import TASK_FIELDS

CLOCK_SKEW_SECONDS = 3600
"""Ids begin with the time of whoever made them up, which may differ by so much from Postgres' own."""

WITHOUT_ORDER = {"tag", "updated_after", "q", "provider_job_id", "request_id"}
WITH_ORDER = {
    "actor", "provider", "lane", "user_id", "project_id", "workflow_id", "workflow_run_id", "interaction_id",
    "parent_task_id", "error_type", "fingerprint", "task_type", "subagent_type",
}  # fmt: skip
"""Filters by what their index gives: the tasks of one state in the order of a list, or all of them to be sorted."""

NEARBY = 4
"""Times a page: how far to look for changes among the newest before they are looked up."""

TAGS_LOOKED_UP = 3
"""Each is one more table for the planner to put in order; few tasks are left to look at when there are more."""

HEXADECIMAL = frozenset("0123456789abcdef")

BULKY = ("payload", "result", "checkpoint")

LARGEST_TITLED = 16_000
"""Bytes of a payload as it is stored: what is larger lies apart from its row, and is not fetched for a title."""

TITLE = f"""CASE WHEN pg_column_size(payload) <= {LARGEST_TITLED} THEN left(coalesce(
    payload ->> 'prompt', payload ->> 'content',
    jsonb_path_query_first(payload, '$.* ? (@.type() == "string")') #>> '{{}}'), 120) END"""
"""The beginning of the prompt, of the content, or of whatever text comes first; without secrets, as the payload is."""


CONDITIONS = {
    "subagent_type": "actor = 'agent' AND payload ->> 'subagent_type' = {}",
    "tag": "tags @> {}::text[]",
    "error_type": "error ->> 'type' = {} AND error IS NOT NULL",
    "fingerprint": "error_fingerprint = {} AND error IS NOT NULL",
    "created_after": "created_at > {}",
    "created_before": "created_at < {}",
    "provider_job_id": "task_id IN (SELECT ordered.task_id FROM generations AS ordered"
    " WHERE ordered.provider IN (SELECT p.name FROM providers AS p) AND ordered.provider_job_id = {})",
    "q": f"({SEARCHED_TEXT}) ILIKE {{}} AND {HAS_TEXT}",
}
"""As the indexes are declared: that there is a text or an error says nothing new, but without it an index is not
used. That of the orders begins with the provider, of which there are few."""


def sorts(wanted: Filter) -> bool:
    """Whether all states are looked up together; a search for a text costs most, and is done once in any case."""
    used = {each.name for each in fields(wanted) if getattr(wanted, each.name) is not None}
    return "q" in used or bool(used & WITHOUT_ORDER and not used & WITH_ORDER)


class Selection:
    """The tasks that a filter means, as SQL, with the values for its placeholders."""

    def __init__(
        self,
        wanted: Filter,
        *,
        owner: str | None = None,
        queues: Sequence[str] | None = None,
        believes_tallies: bool = False,
    ) -> None:
        """With an owner, his tasks only, whatever the filter says. The queues are all that tasks of the filter can be
        in (`queues_of`): what waits is found by them. Who believes the tallies does not look for blocked tasks in
        queues that have none by them."""
        self._queues = queues
        self._queues_place: str | None = None
        self._believes_tallies = believes_tallies
        self.values: list[object] = []
        self._conditions: list[str] = []
        self._updated_after: str | None = None
        self._states_at_once = sorts(wanted)
        self._looks_up_tags = self._states_at_once and wanted.q is None
        self._states = list(State) if wanted.status is None else [state for state in State if state in wanted.status]
        for each in fields(wanted):
            value = getattr(wanted, each.name)
            if value is not None and value != [] and each.name != "status":
                self._restrict(each.name, value)
        if owner is not None:
            self.add("user_id = {}", owner)

    def _restrict(self, name: str, value: Any) -> None:
        if name == "updated_after":
            self._updated_after = self.place(value)
            return
        if name == "created_after":
            self.add("task_id >= {}", first_id_at(value, -CLOCK_SKEW_SECONDS))
        if name == "created_before":
            self.add("task_id < {}", first_id_at(value, CLOCK_SKEW_SECONDS))
        if name == "request_id" and (named := first_task_of(value)) is not None:
            self.add("(request_id = {} OR task_id = {})", value, named)
            return
        if name == "tag" and self._looks_up_tags:
            # Not also among the task's own: the planner would think that next to none has it in both places.
            for tag in value[:TAGS_LOOKED_UP]:
                self.add("task_id IN (SELECT tagged.task_id FROM task_tags AS tagged WHERE tagged.tag = {})", tag)
            value = value[TAGS_LOOKED_UP:]
            if not value:
                return
        self.add(CONDITIONS.get(name, name + " = {}"), anywhere(value) if name == "q" else value)

    def place(self, value: object) -> str:
        self.values.append(value)
        return f"${len(self.values)}"

    def add(self, condition: str, *values: object) -> None:
        self._conditions.append(condition.format(*map(self.place, values)))

    def branches(self) -> list[str]:
        """Conditions of which exactly one is true for each selected task."""
        ended = [state for state in self._states if state in TERMINAL]
        together = [ended] if self._states_at_once and ended else [[state] for state in ended]
        return [*(self._branch(states, "completed_at") for states in together), *self._living_branches()]

    def _living_branches(self) -> list[str]:
        living = [state for state in self._states if state in LIVE]
        if living == [State.RETRYING]:
            return [self._branch(living, "updated_at", "lane = 'retry'", *self._in_queues("queue = ANY ({})"))]
        if self._queues is None:
            return [self._branch(living, "updated_at")] if living else []
        waiting = [state for state in living if state in WAITING]
        found = [self._branch(waiting, "updated_at", *self._in_queues("queue = ANY ({})"))] if waiting else []
        if State.BLOCKED in living:
            some = self._in_queues(SOME_BLOCKED) if self._believes_tallies else []
            found.append(self._branch([State.BLOCKED], "updated_at", *some))
        if State.RUNNING in living:
            found.append(self._branch([State.RUNNING], "updated_at"))
        return found

    def _in_queues(self, condition: str) -> list[str]:
        if self._queues is None:
            return []
        self._queues_place = self._queues_place or self.place(self._queues)
        return [condition.format(self._queues_place)]

    def _branch(self, states: list[State], changed_at: str, *further: str) -> str:
        """What has ended was changed last when it did, and that has an index."""
        changed = [] if self._updated_after is None else [f"{changed_at} > {self._updated_after}"]
        return " AND ".join([f"status IN {words(tuple(states))}", *further, *changed, *self._conditions])

    def page(self, columns: str, *, order: str, limit: int) -> str:
        """Only names of ours and numbered placeholders are put together here."""
        end = f"ORDER BY task_id {order} LIMIT {int(limit)}"
        branches = [f"(SELECT {columns} FROM tasks WHERE {where} {end})" for where in self.branches()]  # noqa: S608
        return f"SELECT * FROM ({' UNION ALL '.join(branches)}) AS page {end}"  # noqa: S608


def columns_of_a_list(*, full: bool) -> str:
    """A list does not carry what nobody asked for: a page of large payloads would weigh half a gigabyte."""
    light = {**{name: f"NULL AS {name}" for name in BULKY}, "error": "error - 'stack_trace' AS error"}
    columns = TASK_FIELDS if full else tuple(light.get(name, name) for name in TASK_FIELDS)
    return ", ".join((*columns, "due_at", "asked_at", "ask_expires_at", f"{TITLE} AS title"))


class ListedTask(TaskRow):
    """A task, and the words that a person knows it by; none where reading them would mean reading a large payload."""

    title: str | None


class Failure(Record):
    """The error of an attempt."""

    task_id: UUID
    at: datetime
    error: dict[str, Any]


async def newest(
    db: Database,
    wanted: Filter,
    *,
    limit: int,
    before: UUID | None = None,
    owner: str | None = None,
) -> list[ListedTask]:
    """A page of tasks older than the last one that the reader has seen, without what may be large of them."""
    queues = await queues_of(db, wanted)

    async def page(from_id: UUID | None) -> list[ListedTask]:
        selection = Selection(wanted, owner=owner, queues=queues, believes_tallies=True)
        for condition, bound in (("task_id < {}", before), ("task_id >= {}", from_id)):
            if bound is not None:
                selection.add(condition, bound)
        if not selection.branches():
            return []
        columns = columns_of_a_list(full=False)
        return await fetch(db, ListedTask, selection.page(columns, order="DESC", limit=limit), *selection.values)

    if wanted.updated_after is not None and (from_id := await _start_of_the_newest(db, before, NEARBY * limit)):
        rows = await page(from_id)
        if len(rows) == limit:
            return rows
    return await page(None)


async def whole(db: Database, task_ids: Sequence[UUID]) -> list[ListedTask]:
    """These tasks with everything that a list can show of them, newest first."""
    columns = columns_of_a_list(full=True)
    query = f"SELECT {columns} FROM tasks WHERE task_id = ANY ($1) ORDER BY task_id DESC"  # noqa: S608 - names of ours
    return await fetch(db, ListedTask, query, list(task_ids))


async def _start_of_the_newest(db: Database, before: UUID | None, number: int) -> UUID | None:
    """Where the newest so many ended tasks begin: what changed of late is mostly there, which no statistics tell."""
    start: UUID | None = await db.fetchval(
        f"""
        SELECT task_id FROM tasks WHERE {FINISHED} AND ($1::uuid IS NULL OR task_id < $1)
        ORDER BY task_id DESC OFFSET $2 LIMIT 1
        """,  # noqa: S608 - the states' own words
        before,
        number,
    )
    return start


async def error_histories(db: Database, task_ids: Sequence[UUID]) -> dict[UUID, list[dict[str, Any]]]:
    """The error of every attempt of these tasks that failed, oldest first."""
    rows = await fetch(
        db,
        Failure,
        """
        SELECT task_id, at, data -> 'error' AS error FROM task_events
        WHERE task_id = ANY ($1) AND type IN ('retry', 'stall', 'bury') AND data ? 'error' ORDER BY task_id, seq
        """,
        list(task_ids),
    )
    histories: dict[UUID, list[dict[str, Any]]] = {task_id: [] for task_id in task_ids}
    for row in rows:
        histories[row.task_id].append({**row.error, "at": row.at})
    return histories


async def sort_in_new_texts(db: Database) -> None:
    """Moves what has gathered beside the text index into it, so that no end has to, and searching stays quick."""
    await db.execute("SELECT gin_clean_pending_list('tasks_finished_text')")


def anywhere(text: str) -> str:
    """A pattern for LIKE that finds the text itself anywhere."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def first_task_of(request_id: str) -> UUID | None:
    """The api calls a request by a UUID without hyphens, which its first task has for its own id; a client whatever
    it likes."""
    return UUID(request_id) if len(request_id) == 32 and set(request_id) <= HEXADECIMAL else None


def first_id_at(moment: datetime, later_by_seconds: float) -> UUID:
    """Ids are UUIDv7 and begin with the millisecond, so a time is a bound of the primary key."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    milliseconds = int((aware.timestamp() + later_by_seconds) * 1000)
    return UUID(int=min(max(milliseconds, 0), 2**48 - 1) << 80)
