"""At most `limit` run, counted by the other side, while workers are killed and frozen and the limit is changed.

`make chaos` counts at providers, too, while everything else is harmed as well.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.limit_drill import LimitDrill
from tests.support.providers.counting_provider import counting_provider
from tests.support.waiting import wait_until

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


def test_a_provider_never_sees_more_calls_at_once_than_its_limit(drill: LimitDrill) -> None:
    provider = drill.provider
    # Two that outlast a lease, so that they are under way when their workers are frozen and killed.
    drill.submit([5, 5, *[0.04] * 98])
    wait_until("the provider is full", lambda: provider.open_calls == LIMIT)
    drill.ring_for_everything()
    frozen, killed = drill.guardians
    drill.freeze_a_worker(frozen)
    wait_until("half of it is done", lambda: drill.finished() >= 40)
    drill.kill_a_worker(killed)
    drill.change_limit(LOWERED)
    drill.wait_until_all_finished(seconds=60)
    assert drill.overshoots() == []
    assert drill.oddities() == []
    assert provider.most_at_once == LIMIT
    assert drill.sums()["stalls"] >= 1, "somebody was at work when harm was done"
