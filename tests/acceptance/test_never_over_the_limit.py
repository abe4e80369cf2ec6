"""At most `limit` run, counted by the other side, while workers are killed and frozen and the limit is changed.

`make chaos` counts at providers, too, while everything else is harmed as well.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.installation import Process
from tests.support.limit_drill import LimitDrill
from tests.support.providers.counting_provider import counting_provider
from tests.support.waiting import wait_until
from windlass.shared.process.procfs import descendants

LIMIT, LOWERED = 4, 2


@pytest.fixture
def drill(database_url: str, amqp_url: str, tmp_path: Path) -> Iterator[LimitDrill]:
    with counting_provider() as provider:
        drill = LimitDrill(database_url, amqp_url, tmp_path, provider, limit=LIMIT, actors=2)
        try:
            drill.start()
            yield drill
        finally:
            drill.windlass.stop()
            print(drill.windlass.log())


def guardian_of(drill: LimitDrill, task_id: str) -> Process:
    """Of the worker that is at this task."""
    client = drill.windlass.client
    worker = wait_until("somebody is at it", lambda: client.get(task_id)["worker_id"])
    (pid,) = [each["pid"] for each in client.workers() if each["worker_id"] == worker]
    (found,) = [each for each in drill.guardians if pid in {below.pid for below in descendants(each.pid)}]
    return found


def test_a_provider_never_sees_more_calls_at_once_than_its_limit(drill: LimitDrill) -> None:
    provider = drill.provider
    # Two that outlast a lease, so that they are under way when their workers are frozen and killed; with two more that
    # take a moment the provider is full.
    drill.submit([8, 8, 2, 2, *[0.04] * 96])
    wait_until("the provider is full", lambda: provider.most_at_once == LIMIT)
    drill.ring_for_everything()
    frozen = guardian_of(drill, drill.ids[0])
    (killed,) = [each for each in drill.guardians if each is not frozen]
    drill.freeze_a_worker(frozen)
    wait_until("half of it is done", lambda: drill.finished() >= 40)
    drill.kill_a_worker(killed)
    drill.change_limit(LOWERED)
    drill.wait_until_all_finished(seconds=150)
    assert drill.overshoots() == []
    assert drill.oddities() == []
    assert provider.most_at_once == LIMIT
    assert drill.sums()["stalls"] >= 1, "somebody was at work when harm was done"
