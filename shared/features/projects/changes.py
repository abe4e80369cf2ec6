"""What one turn changes, gathered and written by one call at its end."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from windlass.shared.concerns import Concern
from windlass.shared.db import Database, as_json
from windlass.shared.features.projects import reporting
from windlass.shared.features.projects.queries import Item, Outcome, Queue, Run
from windlass.shared.features.transactions import call_all
from windlass.shared.store.functions import named
from windlass.shared.store.projects import CHANNEL

OF_A_RUN = ("run_id", "item_id", "task_id", "mode", "state", "started_at", "ended_at", "error", "revived_from")
OF_A_QUEUE = ("state", "mode", "current_run_id", "started_at", "stopped_at", "stop_reason", "last_error")
OF_AN_ITEM = ("item_id", "state", "position", "last_run_id")


class Changes:
    """The caller has locked the project. Rows of the feature come first, then the operations that lock tasks."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.runs: dict[UUID, Run] = {}
        self.opened: dict[UUID, Run] = {}
        self.items: dict[UUID, Item] = {}
        self._events: list[dict[str, Any]] = []
        self._calls: list[tuple[str, Sequence[object]]] = []
        self._written: list[dict[str, Any]] = []
        self._submitted: list[Item] = []
        self._outcomes: list[Outcome] = []

    async def write(self, queue: Queue, moment: datetime) -> bool:
        """Returns whether there was something to write."""
        if not self._events:
            assert not self._calls, "nothing happens without an event"
            return False
        changes = {
            "at": moment,
            "queue": queue,
            "runs": [run for run in self.runs.values() if run.run_id not in self.opened],
            "opened": list(self.opened.values()),
            "items": [{name: getattr(item, name) for name in OF_AN_ITEM} for item in self.items.values()],
            "events": self._events,
        }
        own = (f"{named('write_project')}({{}}::uuid, {{}}::text::jsonb)", (queue.project_id, as_json(changes)))
        for answer in await call_all(self._db, [own, *self._calls]):
            if isinstance(answer, dict):
                outcome = msgspec.convert(answer, Outcome)
                assert outcome.changed is None or outcome.changed == 1, "it was read under the project's lock"
                self._outcomes.append(outcome)
        self._written += self._events
        self.runs, self.opened, self.items, self._events, self._calls = {}, {}, {}, [], []
        return True

    def report(self, project_id: UUID) -> None:
        """Once the transaction is committed."""
        reporting.report(project_id, self._written, self._submitted, self._outcomes)

    # Events

    def note_item(self, change: str, item: Item) -> None:
        facts = {"item_id": str(item.item_id), "position": item.position, "title": item.title, "state": item.state}
        self._note(change, facts)

    def note_run(self, change: str, run: Run) -> None:
        facts = {name: plain(getattr(run, name)) for name in OF_A_RUN}
        self._note(change, {name: value for name, value in facts.items() if value is not None})

    def note_queue(self, change: str, queue: Queue, run: Run | None) -> None:
        facts = {name: plain(getattr(queue, name)) for name in OF_A_QUEUE}
        self._note(change, {**facts, "current_task_id": None if run is None else str(run.task_id)})

    def _note(self, change: str, facts: dict[str, Any]) -> None:
        self._events.append({"type": change, "data": facts})

    # Operations of the engine and of other features

    def submit(self, item: Item, task_id: UUID, owner: str) -> None:
        """The item's task, complete as it was stored. A start in the past means now: a task that is older than others
        would go before them."""
        self._submitted.append(item)
        self._call(
            f"""(SELECT ({named("store_tasks")}(jsonb_build_array(
                CASE WHEN (i.task ->> 'run_at')::timestamptz <= clock_timestamp() THEN i.task - 'run_at' ELSE i.task END
                || jsonb_build_object(
                    'task_id', {{}}::uuid, 'user_id', {{}}::text, 'project_id', i.project_id,
                    'concerns', coalesce((i.task ->> 'concerns')::int, 0) | {Concern.RUN.value})))).refusal
                FROM project_items i WHERE i.item_id = {{}}::uuid)""",  # noqa: S608 - names of our own
            task_id,
            owner,
            item.item_id,
        )

    def cancel(self, task_id: UUID, reason: str, *, frees: int = 0) -> None:
        """`frees` has subscriptions that the task loses."""
        self._call(
            f"""(SELECT jsonb_build_object('revived', '[]'::jsonb, 'ended', {named("counts_of")}(c.ended))
            FROM {named("cancel_tasks")}(ARRAY[{{}}::uuid], '{reason}', {frees}) AS c)""",  # noqa: S608 - words of our own
            task_id,
        )

    def revive(self, task_id: UUID) -> None:
        self._call(
            f"""(SELECT jsonb_build_object(
                'changed', cardinality(r.changed), 'revived', {named("counts_of")}(r.everybody),
                'ended', {named("counts_of")}(r.ended))
            FROM {named("revive_tasks")}(ARRAY[{{}}::uuid], for_owner => {Concern.RUN.value}) AS r)""",  # noqa: S608
            task_id,
        )

    def publish(self, project_id: UUID, change: str) -> None:
        """`project.started` and `project.stopped`, for webhooks."""
        self._call(f"{named('publish_project')}({{}}::uuid, '{change}')", project_id)

    def tell_schedule(self, schedule_id: UUID) -> None:
        """What the schedule started has ended."""
        self._call(f"{named('write_event')}('schedule', {{}}::uuid, 'finish')", schedule_id)

    def wake_janitor(self) -> None:
        self._call("pg_notify({}::text, '')", CHANNEL)

    def _call(self, call: str, *values: object) -> None:
        self._calls.append((call, values))


def plain(value: Any) -> Any:
    """As JSON has it."""
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, UUID) else value
