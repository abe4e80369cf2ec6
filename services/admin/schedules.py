"""Schedules that stand in the configuration or beside an actor: made, changed and deleted as it says."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
from pydantic import ValidationError

from windlass.services.admin.loading import Found
from windlass.shared.actors.new_task import NewTask
from windlass.shared.db import Database
from windlass.shared.features.schedules import changing
from windlass.shared.schedules.definition import Definition
from windlass.shared.schedules.targets import is_the_same
from windlass.shared.schedules.words import SYSTEM, Kind
from windlass.shared.settings import Settings
from windlass.shared.store.operating import registry
from windlass.shared.store.schedules import reading
from windlass.shared.store.schedules.reading import Read
from windlass.shared.submission.known import Actors, built_in_actors, known_actors, known_without_a_row
from windlass.shared.submission.refusal import Refused
from windlass.shared.submission.rules import submission_of
from windlass.shared.submission.scheduled import (
    NOT_OF_A_SCHEDULE,
    NewSchedule,
    new_schedule,
    start_of_task,
    start_of_workflow,
)
from windlass.shared.submission.workflows import workflow_of


class System(NamedTuple):
    """Whoever writes the configuration may do anything."""

    user_id: str = SYSTEM
    is_admin: bool = True


class Declared(NamedTuple):
    name: str
    where: str
    said: dict[str, Any] | Definition


async def declare(db: Database, settings: Settings, found: Found) -> list[str]:
    """Returns what is wrong. One that is as it was is left alone, with its times; what no longer stands anywhere is
    deleted, unless something could not be read, which may be where it stood."""
    rows = await registry.read(db, heard_within_seconds=0)
    actors = known_actors(rows, await registry.queues(db))
    mistakes: list[str] = []
    wanted: dict[str, NewSchedule] = {}
    for each in declared_in(settings, found):
        try:
            wanted[each.name] = prepared(each, settings, actors)
        except (Refused, ValidationError, ValueError) as error:
            mistakes.append(f"{each.where}: {_told(error)}")
    there = {row.name: row for row in await reading.declared(db)}
    for name, new in wanted.items():
        if name not in there:
            await changing.create(db, new)
        elif not is_as_it_was(there[name], new):
            await changing.change(db, there[name].schedule_id, new)
    if not mistakes and not found.mistakes:
        for name in there.keys() - wanted.keys():
            await changing.delete(db, there[name].schedule_id)
    return mistakes


def wrong_schedules(settings: Settings, found: Found) -> Iterator[str]:
    """Checks the schedules against the actors that were loaded, without a database. While some could not be loaded, an
    unknown actor may be one of these, and is not reported a second time."""
    actors = {**built_in_actors(), **{each.name: known_without_a_row(each) for each in found.definitions}}
    for each in declared_in(settings, found):
        try:
            prepared(each, settings, actors)
        except (Refused, ValidationError, ValueError) as error:
            if not (found.mistakes and getattr(error, "code", None) == "unknown-actor"):
                yield f"{each.where}: {_told(error)}"


def is_as_it_was(row: Read, new: NewSchedule) -> bool:
    fields = msgspec.structs.asdict(new)
    prepared = fields.pop("prepared")
    return all(row[field] == value for field, value in fields.items()) and is_the_same(new.kind, row.prepared, prepared)


def declared_in(settings: Settings, found: Found) -> Iterator[Declared]:
    for name, said in settings.schedules.items():
        yield Declared(name, f"[schedules.{name}]", said)
    for each in found.definitions:
        if each.schedule is not None:
            payload = each.schedule.get("payload", {})
            target = {"task": {"actor": each.name, "payload": payload}}
            times = {name: value for name, value in each.schedule.items() if name != "payload"}
            yield Declared(each.name, f"the schedule of the actor {each.name}", {"target": target, **times})


def prepared(declared: Declared, settings: Settings, actors: Actors) -> NewSchedule:
    said = declared.said if isinstance(declared.said, Definition) else Definition.model_validate(declared.said)
    if said.target.kind == Kind.PROJECT:
        assert said.target.project is not None
        start = said.target.project.model_dump()
    elif said.target.kind == Kind.TASK:
        task = said.target.task or {}
        for name in NOT_OF_A_SCHEDULE.keys() & task.keys():
            raise ValueError(f"target.task.{name}: {NOT_OF_A_SCHEDULE[name]}")
        start = start_of_task(submission_of(NewTask.model_validate(task), System(), settings, actors), SYSTEM)
    else:
        start = start_of_workflow(workflow_of(said.target.workflow, System(), settings, actors), SYSTEM)
    return new_schedule(said, declared.name, start, owner=SYSTEM, declared_by=declared.where)


def _told(error: Exception) -> str:
    if isinstance(error, Refused):
        return "; ".join(f"{each.pointer}: {each.detail}" for each in error.wrong)
    if isinstance(error, ValidationError):
        return "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
    return str(error)
