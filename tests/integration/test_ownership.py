"""Whoever does not own a task can neither end it nor report nor renew, whatever it once owned."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from tests.support.engine.store import ENDS, Engine, on_the_engine
from windlass.shared.store import tasks
from windlass.shared.store.tasks import Claimed


async def after_a_stall(engine: Engine) -> tuple[Claimed, Claimed]:
    """An attempt that has lost its task, and the one that has it now."""
    old = await engine.running(worker="old")
    await engine.lapse(old.task_id)
    await tasks.stall(engine.pool)
    return old, await engine.start(old.task_id, worker="new")


async def before_anybody_took_it_again(engine: Engine) -> tuple[Claimed, Claimed | None]:
    old = await engine.running(worker="old")
    await engine.lapse(old.task_id)
    await tasks.stall(engine.pool)
    return old, None


async def with_a_wrong_token(engine: Engine) -> tuple[Claimed, Claimed]:
    owner = await engine.running()
    return replace(owner, claim_token=uuid4()), owner


async def with_a_wrong_attempt(engine: Engine) -> tuple[Claimed, Claimed]:
    owner = await engine.running()
    return replace(owner, attempt=7), owner


NOT_OWNERS = [after_a_stall, before_anybody_took_it_again, with_a_wrong_token, with_a_wrong_attempt]
who_does_not_own_it = pytest.mark.parametrize("not_the_owner", NOT_OWNERS, ids=lambda case: case.__name__)


@pytest.mark.parametrize("transition", [transition for transition, _ in ENDS])
@who_does_not_own_it
@on_the_engine
async def test_an_end_by_who_does_not_own_the_task_is_refused(
    engine: Engine, not_the_owner: Any, transition: str
) -> None:
    old, owner = await not_the_owner(engine)
    before = await engine.row(old.task_id)
    words: Sequence[dict[str, Any]] = [{"type": "output", "data": {"text": "late"}}]
    assert await engine.finish(old, transition, events=words) is None
    assert await engine.row(old.task_id) == before
    assert "output" not in await engine.story(old.task_id)
    if owner is not None:
        assert await engine.finish(owner) == "completed"


@who_does_not_own_it
@on_the_engine
async def test_a_report_by_who_does_not_own_the_task_is_refused(engine: Engine, not_the_owner: Any) -> None:
    old, owner = await not_the_owner(engine)
    before = await engine.row(old.task_id)
    output = [{"type": "output", "data": {"text": "late"}}]
    assert not await engine.say(old, progress={"message": "late"}, checkpoint={"late": True}, events=output)
    assert await engine.row(old.task_id) == before
    if owner is not None:
        assert await engine.say(owner, progress={"message": "mine"}, checkpoint=1, events=output)


@pytest.mark.parametrize("not_the_owner", NOT_OWNERS[:3], ids=lambda case: case.__name__)
@on_the_engine
async def test_a_renewal_by_who_does_not_own_the_task_is_refused(engine: Engine, not_the_owner: Any) -> None:
    old, _ = await not_the_owner(engine)
    before = await engine.row(old.task_id)
    assert await engine.renew(old) == [(False, False)]
    assert await engine.row(old.task_id) == before
