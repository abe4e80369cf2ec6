"""Ends and revivals are counted by whoever brings them about, each once, with the dependents that go along."""

from collections import Counter
from uuid import uuid4

from tests.support.engine.store import Engine, on_the_engine
from windlass.shared.metrics.tasks import FINISHED, REVIVED, STALLS
from windlass.shared.store import tasks
from windlass.shared.store.reading.listing import Filter
from windlass.shared.store.tasks import bulk


class Counts:
    """How much has been counted since it was made: the counters are the whole process' own."""

    def __init__(self) -> None:
        self._before = self._now()

    def since(self) -> dict[tuple[str, ...], float]:
        return dict(self._now() - self._before)

    def _now(self) -> Counter[tuple[str, ...]]:
        found: Counter[tuple[str, ...]] = Counter()
        for word, instrument in (("ended", FINISHED), ("revived", REVIVED), ("stalled", STALLS)):
            for family in instrument.collect():
                for sample in family.samples:
                    if sample.name.endswith("_total"):
                        labels = (sample.labels.get("outcome"), sample.labels.get("fault"))
                        found[word, *filter(None, labels)] += int(sample.value)
        return found


@on_the_engine
async def test_a_cancel_counts_its_task_and_its_dependent_and_only_once(engine: Engine) -> None:
    parent = await engine.submit()
    await engine.submit(depends_on=[parent])
    counts = Counts()
    await engine.cancel(parent)
    await engine.cancel(parent)
    assert counts.since() == {("ended", "cancelled", "none"): 1, ("ended", "dead", "user"): 1}
    counts = Counts()
    await engine.revive(parent)
    await engine.revive(parent)
    assert counts.since() == {("revived",): 2}


@on_the_engine
async def test_a_child_of_the_dead_is_counted_as_it_is_submitted(engine: Engine) -> None:
    parent = await engine.dead()
    counts = Counts()
    await engine.submit(depends_on=[parent])
    assert counts.since() == {("ended", "dead", "user"): 1}


@on_the_engine
async def test_a_bulk_job_counts_what_it_changes(engine: Engine) -> None:
    for _ in range(3):
        await engine.submit()
    running = await engine.running()
    for action, expected in (("cancel", {("ended", "cancelled", "none"): 3}), ("retry", {("revived",): 3})):
        counts = Counts()
        job = await bulk.accept(
            engine.pool, uuid4(), action, Filter(), matched=4, user_id="ann", scope_user_id=None, canary=None
        )
        await bulk.advance(engine.pool, job, await bulk.next_chunk(engine.pool, job))
        assert counts.since() == expected, "the one that runs has not ended yet"
    counts = Counts()
    await engine.finish(running, "interrupt")
    assert counts.since() == {("ended", "cancelled", "none"): 1}


@on_the_engine
async def test_a_stall_counts_and_so_does_what_it_buries(engine: Engine) -> None:
    attempt = await engine.running(max_retries=0)
    await engine.submit(depends_on=[attempt.task_id])
    await engine.lapse(attempt.task_id)
    counts = Counts()
    rows = await tasks.stall(engine.pool)
    assert [row["task_id"] for row in rows] == [attempt.task_id], "the dependent is nobody's stall"
    assert counts.since() == {("stalled",): 1, ("ended", "dead", "system"): 1, ("ended", "dead", "user"): 1}


@on_the_engine
async def test_what_is_too_old_counts_with_its_dependents(engine: Engine) -> None:
    old = await engine.submit(max_age_seconds=60)
    await engine.submit(depends_on=[old])
    await engine.outlive(old)
    counts = Counts()
    assert [row["task_id"] for row in await tasks.expire(engine.pool)] == [old]
    assert counts.since() == {("ended", "dead", "system"): 1, ("ended", "dead", "user"): 1}
