"""Whatever meets whatever, nobody waits in a circle: every move of the store is driven against every other."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.engine.locks.drill import Drill, a_drill
from tests.support.engine.locks.moves import MOVES
from tests.support.engine.locks.promises import check_promises
from tests.support.engine.store import empty_database
from tests.support.servers.private_servers import Servers
from windlass.shared.features import transactions
from windlass.shared.features.workflows import turn

NAMES = list(MOVES)


@pytest.fixture(scope="module")
def drill(servers: Servers, migrated_template: str) -> Iterator[tuple[asyncio.Runner, Drill]]:
    """One for all: its connections keep the plans of some fifty functions. Turns of features, which repeat themselves
    after a deadlock, raise it here."""
    url = empty_database(servers.database_url, migrated_template)
    with asyncio.Runner() as runner, in_a_loop(runner, url) as drill, pytest.MonkeyPatch.context() as patch:
        for module in (transactions, turn):
            patch.setattr(module, "REPEATED", ())
        yield runner, drill


@contextmanager
def in_a_loop(runner: asyncio.Runner, url: str) -> Iterator[Drill]:
    context = a_drill(url)
    drill = runner.run(context.__aenter__())
    try:
        yield drill
    finally:
        runner.run(context.__aexit__(None, None, None))


@pytest.mark.parametrize("name", NAMES)
def test_a_move_meets_every_other_and_nobody_waits_in_a_circle(name: str, drill: tuple[asyncio.Runner, Drill]) -> None:
    """And itself. Each pair once: the first of the two drives it. A deadlock and a lock timeout are raised."""
    runner, driven = drill

    async def meet_all() -> None:
        await driven.begin(seed=name)
        for other in NAMES[NAMES.index(name) :]:
            await driven.meet(name, other)
        await check_promises(driven.yard)

    runner.run(meet_all())
