"""Schedules that stand in the configuration and beside actors: written down as they stand there, and no oftener."""

from typing import Any

from tests.support.engine.projects import Project
from tests.support.engine.schedules import look
from tests.support.engine.store import Engine, on_the_engine
from windlass.services.admin.loading import Found
from windlass.services.admin.schedules import declare
from windlass.shared.actors.built_in import built_in
from windlass.shared.actors.definition import Definition
from windlass.shared.settings import Settings
from windlass.shared.store.operating import registry
from windlass.shared.store.schedules import reading
from windlass.shared.store.schedules.reading import Read

NIGHTLY = {"cron": "30 2 * * *", "timezone": "Europe/Berlin", "target": {"task": {"actor": "probe", "payload": {}}}}


async def declared(
    engine: Engine, *actors: Definition, **schedules: dict[str, Any]
) -> tuple[dict[str, Read], list[str]]:
    settings = Settings(database_url=engine.database_url, schedules=schedules)
    definitions = [*built_in().values(), *actors]
    await registry.register(engine.pool, definitions)
    wrong = await declare(engine.pool, settings, Found(definitions, []))
    return {row.name: row for row in await reading.declared(engine.pool)}, wrong


@on_the_engine
async def test_the_configuration_s_schedules_are_the_system_s_and_follow_it(engine: Engine) -> None:
    made, wrong = await declared(engine, nightly=NIGHTLY, hourly={**NIGHTLY, "cron": "0 * * * *"})
    assert wrong == []
    row = made["nightly"]
    assert (row.user_id, row.declared_by, row.kind, row.timezone) == (
        "system",
        "[schedules.nightly]",
        "task",
        "Europe/Berlin",
    )
    again, _ = await declared(engine, nightly=NIGHTLY, hourly={**NIGHTLY, "cron": "0 * * * *"})
    assert again["nightly"].version == 1, "who says the same again changes nothing"
    changed, _ = await declared(engine, nightly={**NIGHTLY, "cron": "0 3 * * *"})
    assert list(changed) == ["nightly"], "what no longer stands there is deleted"
    assert (changed["nightly"].cron, changed["nightly"].schedule_id) == ("0 3 * * *", row.schedule_id)


@on_the_engine
async def test_what_is_wrong_is_told_and_keeps_nobody_else_out_and_deletes_nothing(engine: Engine) -> None:
    await declared(engine, nightly=NIGHTLY)
    wrong = {**NIGHTLY, "target": {"task": {"actor": "nobody"}}}
    there, mistakes = await declared(engine, wrong=wrong, other=NIGHTLY)
    assert set(there) == {"nightly", "other"}
    assert len(mistakes) == 1
    assert mistakes[0].startswith("[schedules.wrong]: /actor: no actor is called nobody")


@on_the_engine
async def test_an_actor_brings_its_own_schedule(engine: Engine) -> None:
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    schedule = {"cron": "0 6 * * *", "payload": {"text": "hi"}}
    greet = Definition(name="greet", payload_schema=schema, module="ours", provider="greet", schedule=schedule)
    there, mistakes = await declared(engine, greet)
    assert mistakes == []
    assert there["greet"].target == {"task": {"actor": "greet", "payload": {"text": "hi"}}}
    assert there["greet"].prepared["provider"] == "greet"


REPORT: dict[str, Any] = {
    "name": "report",
    "tasks": [
        {"key": "draft", "actor": "probe", "payload": {}},
        {"key": "print", "actor": "probe", "payload": {}, "depends_on": ["draft"]},
    ],
}


@on_the_engine
async def test_a_workflow_and_a_project_stand_there_as_a_task_does(engine: Engine) -> None:
    project = await Project.made(engine, "one")
    said = {
        "report": {**NIGHTLY, "target": {"workflow": REPORT}},
        "site": {**NIGHTLY, "target": {"project": {"project_id": str(project.project_id), "mode": "loop"}}},
    }
    made, wrong = await declared(engine, **said)
    assert wrong == []
    again, _ = await declared(engine, **said)
    assert [again[name].version for name in said] == [1, 1], "although a workflow is prepared under new ids"
    assert (made["report"].kind, made["site"].kind) == ("workflow", "project")
    next_at = made["report"].next_at
    assert next_at is not None
    assert {(each.kind, each.outcome) for each in await look(engine, next_at)} == {
        ("workflow", "started"), ("project", "started"),
    }  # fmt: skip
    owners = await engine.pool.fetch("SELECT DISTINCT user_id FROM tasks WHERE workflow_id IS NOT NULL")
    assert [row["user_id"] for row in owners] == ["system"]
    other = {**REPORT, "tasks": [*REPORT["tasks"], {"key": "send", "actor": "probe", "payload": {}}]}
    changed, _ = await declared(engine, **{**said, "report": {**NIGHTLY, "target": {"workflow": other}}})
    assert (changed["report"].version, changed["site"].version) == (2, 1)


@on_the_engine
async def test_what_is_wrong_with_a_workflow_is_told_where_it_stands(engine: Engine) -> None:
    wrong = {"name": "report", "tasks": [{"key": "draft", "actor": "probe", "depends_on": ["nobody"]}]}
    _, (mistake,) = await declared(engine, report={**NIGHTLY, "target": {"workflow": wrong}})
    assert mistake.startswith("[schedules.report]: /tasks/0/depends_on")
