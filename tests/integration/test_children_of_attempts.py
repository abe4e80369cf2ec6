"""Children that attempts make: checked as REST would, once for each place, and of their parent's user."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

from tests.support.engine.attempting import Worker, a_worker
from tests.support.engine.running_versions import comes
from tests.support.engine.store import Engine, empty_database
from tests.support.engine.store_from_threads import ask
from tests.support.servers.private_servers import Servers
from windlass.services.actors.worker.context.async_context import AsyncAttempt
from windlass.services.actors.worker.context.context import Context, Stopped
from windlass.shared.actors.built_in import built_in
from windlass.shared.actors.definition import Definition
from windlass.shared.errors import InvalidInput, InvalidStep
from windlass.shared.store.operating import registry
from windlass.shared.store.rows import TaskRow

TRANSLATE = Definition(
    name="translate",
    payload_schema={
        "type": "object",
        "properties": {"text": {"type": "string"}, "account": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": False,
    },
    module="our_actors",
    provider="translate",
    timeout_seconds=77,
    concurrency_key=("/account",),
    concurrency_limit=2,
)


@pytest.fixture
def worker(servers: Servers, migrated_template: str, tmp_path: Path) -> Iterator[Worker]:
    with a_worker(empty_database(servers.database_url, migrated_template), tmp_path) as worker:
        yield worker


@pytest.fixture
def parent(worker: Worker) -> Context:
    fields = {"project_id": "p", "workflow_id": "w", "workflow_run_id": "r", "interaction_id": "i"}
    return worker.claim(ask(worker.engine_url, lambda engine: engine.submit(**fields)))


def row_of(worker: Worker, task_id: str | UUID) -> TaskRow:
    return ask(worker.engine_url, lambda engine: engine.row(UUID(str(task_id))))


def children_of(worker: Worker) -> int:
    return ask(worker.engine_url, lambda engine: engine.count("parent_task_id IS NOT NULL"))


def test_a_child_is_its_parent_s_user_s_in_the_same_project_workflow_and_run(worker: Worker, parent: Context) -> None:
    child = row_of(worker, parent.submit("probe", {"seconds": 1}, priority="high", tags=["a"], max_retries=5))
    assert (child.parent_task_id, child.user_id) == (parent.task_id, "ann")
    assert (child.project_id, child.workflow_id, child.workflow_run_id, child.interaction_id) == ("p", "w", "r", "i")
    assert (child.status, child.payload, child.priority, child.tags, child.max_retries) == (
        "queued", {"seconds": 1}, 1, ["a"], 5,
    )  # fmt: skip
    assert row_of(worker, parent.submit("probe", seconds=2, project_id="other")).project_id == "other"


def test_the_same_place_of_a_later_attempt_has_the_same_child(worker: Worker, parent: Context) -> None:
    def two(context: Context) -> list[str]:
        return [context.submit("probe", seconds=1), context.submit("probe", seconds=1)]

    def in_a_step(context: Context) -> str:
        def fan_out() -> str:
            child = context.submit("probe", seconds=2)
            assert context.task.attempt > 1, "the first attempt is cut off inside the step"
            return child

        return context.step("fan out", fan_out)

    first = two(parent)
    with pytest.raises(AssertionError):
        in_a_step(parent)
    assert len(set(first)) == 2
    assert children_of(worker) == 3
    again = worker.take_back(parent)
    assert in_a_step(again) not in first, "a step's children are counted by themselves"
    assert two(again) == first
    assert children_of(worker) == 3


def test_in_a_later_life_only_what_had_died_is_made_anew(worker: Worker, parent: Context) -> None:
    dead, queued = parent.submit("probe"), parent.submit("probe")

    async def end_and_revive(engine: Engine) -> None:
        await engine.finish(await engine.start(UUID(dead)), "bury")

    ask(worker.engine_url, end_and_revive)
    same_life = worker.take_back(parent)
    assert [same_life.submit("probe"), same_life.submit("probe")] == [dead, queued]

    async def revive(engine: Engine) -> None:
        await engine.finish(same_life.task, "bury")
        await engine.revive(parent.task_id)

    ask(worker.engine_url, revive)
    next_life = worker.claim(parent.task_id)
    anew, kept = next_life.submit("probe"), next_life.submit("probe")
    assert kept == queued
    assert anew != dead
    assert worker.take_back(next_life).submit("probe") == anew


def test_an_attempt_that_lost_its_claim_makes_none(worker: Worker, parent: Context) -> None:
    worker.take_back(parent)
    with pytest.raises(Stopped):
        parent.submit("probe")
    assert parent.stop_reason == "lost"
    assert children_of(worker) == 0


def test_whose_parent_is_to_be_cancelled_is_not_made(worker: Worker, parent: Context) -> None:
    ask(worker.engine_url, lambda engine: engine.cancel(parent.task_id))
    with pytest.raises(Stopped):
        parent.submit("probe")
    assert parent.stop_reason == "cancelled"
    assert children_of(worker) == 0


def test_another_actor_at_the_same_place_is_told(worker: Worker, parent: Context) -> None:
    parent.submit("probe")
    with pytest.raises(InvalidStep, match="submit 1 was of probe in an earlier attempt and is of summarize now"):
        worker.take_back(parent).submit("summarize", content="long")


@pytest.mark.parametrize(
    ("actor", "payload", "options", "said"),
    [
        ("prob", {}, {}, "no actor is called prob; did you mean"),
        ("probe", {"seconds": "1"}, {}, "/seconds: "),
        ("probe", {}, {"seconds": 1}, "there is no option seconds"),
        ("probe", {}, {"priority": 12}, "/priority: "),
        ("probe", {}, {"provider": "nobody"}, "no provider nobody does probe tasks"),
        ("probe", {"outcome": "crash"}, {}, "/payload/outcome: `crash` and `hang` need an admin"),
        ("probe", {"outcome": "hang"}, {}, "need an admin"),
        ("probe", {"outcome": "transient", "error_type": "RateLimited"}, {}, "pauses the provider for everybody"),
        ("probe", {"result": "a\0b"}, {}, "/payload/result: a string must not contain the character NUL"),
        ("probe", {"result": 2**70}, {}, "must fit into 64 bits|too large|out of range"),
        ("probe", {}, {"webhook_url": "http://x"}, "takes no webhook_url"),
        ("media", {"action": "txt2img", "prompt": "x"}, {}, "no default provider; choose one of"),
        ("media", {"action": "img2vid", "prompt": "x"}, {"provider": "leonardo"}, "/payload/source_image: img2vid beg"),
        (
            "media",
            {"action": "txt2img", "prompt": "x", "params": {"sise": 1}},
            {"provider": "leonardo"},
            "/payload/params/sise: leonardo takes no such parameter",
        ),
        ("probe", {}, {"dedupe_key": "k"}, "takes no dedupe_key: a child is made once by itself"),
        ("probe", {}, {"user_id": "bob"}, "takes no user_id"),
        ("probe", {"result": object()}, {}, "must be JSON"),
        ("probe", {"result": "x" * 1_100_000}, {}, "1,000,000 bytes"),
        ("agent", {"subagent_type": "nobody", "prompt": "go"}, {}, "no agent is called nobody"),
        ("probe", {}, {"depends_on": [UUID(int=1)]}, "depends on what is not there"),
        (object(), {}, {}, "takes an actor or its name"),
        ("translate", {"txt": "hi"}, {}, "txt"),
        ("translate", {"text": "hi", "account": "x" * 300}, {}, "255 characters at most"),
    ],
)
def test_what_rest_would_refuse_is_refused(
    parent: Context, worker: Worker, *, actor: Any, payload: dict[str, Any], options: dict[str, Any], said: str
) -> None:
    register(worker)
    with pytest.raises(InvalidInput, match=said):
        parent.submit(actor, payload, **options)
    assert children_of(worker) == 0


def test_a_payload_among_the_options_is_named_where_it_stands(parent: Context) -> None:
    with pytest.raises(InvalidInput, match="/secnds: there is no such field; did you mean `seconds`") as refused:
        parent.submit("probe", secnds=1)
    assert refused.value.details["code"] == "invalid-payload"


def register(worker: Worker, definition: Definition = TRANSLATE) -> None:
    ask(worker.engine_url, lambda engine: registry.register(engine.pool, [definition]))


def test_a_child_is_one_that_every_version_at_work_takes(worker: Worker, parent: Context) -> None:
    """As over REST: whoever claims it can do it."""
    register(worker)
    properties = {**TRANSLATE.payload_schema["properties"], "tone": {"type": "string"}}
    newer = msgspec.structs.replace(TRANSLATE, payload_schema={**TRANSLATE.payload_schema, "properties": properties})
    ask(worker.engine_url, lambda engine: comes(engine, "w-newer", newer))
    with pytest.raises(InvalidInput, match=f"/tone: .*says version {TRANSLATE.version}, which still runs"):
        parent.submit("translate", text="hi", tone="dry")
    assert row_of(worker, parent.submit("translate", text="hi")).actor == "translate"
    register(worker, newer)
    again = worker.take_back(parent)
    assert row_of(worker, again.submit("translate", text="hi", tone="dry")).payload == {"text": "hi", "tone": "dry"}


def test_a_version_of_a_built_in_actor_that_somebody_runs_counts_as_well(worker: Worker, parent: Context) -> None:
    ours = built_in()["probe"]
    strict = msgspec.structs.replace(ours, payload_schema={**ours.payload_schema, "required": ["steps"]})
    ask(worker.engine_url, lambda engine: comes(engine, "w-strict", strict))
    with pytest.raises(InvalidInput, match=f"/payload/steps: must be given .*{strict.version}"):
        parent.submit("probe", {})
    assert row_of(worker, parent.submit("probe", steps=1)).payload == {"steps": 1}


def test_who_makes_many_children_asks_once_who_takes_them(
    worker: Worker, parent: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windlass.services.actors.worker.context.children.REMEMBERED_SECONDS", 600)
    for _ in range(3):
        parent.submit("probe")
    assert worker.asked == 4


def test_an_actor_of_somebody_s_own_is_known_from_its_row(worker: Worker, parent: Context) -> None:
    register(worker)
    child = row_of(worker, parent.submit("translate", text="hi", account="a"))
    assert (child.queue, child.timeout_seconds, child.concurrency_key) == ("translate.translate", 77, "a")


def test_an_async_attempt_makes_the_same_children(worker: Worker, parent: Context) -> None:
    def submit(context: Context) -> str:
        return str(asyncio.run(AsyncAttempt(context).submit("probe", seconds=1)))

    child = submit(parent)
    assert submit(worker.take_back(parent)) == child
    assert children_of(worker) == 1
