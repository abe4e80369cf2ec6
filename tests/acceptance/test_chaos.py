"""A small storm over a whole Windlass under mixed load, judged from outside; `make chaos` is the large one."""

from collections.abc import Iterator
from random import Random

import pytest

from tests.chaos.faults import plan as kinds
from tests.chaos.faults.plan import Kind, Place, schedule
from tests.chaos.load.clients import Load
from tests.chaos.projects.load import ProjectsLoad, Scale
from tests.chaos.run import Storm
from tests.chaos.site.installation import Installation, Size
from tests.chaos.site.network import a_network
from tests.support.servers.private_servers import open_directory
from tests.support.servers.restartable_servers import restartable_postgres

SEED = 11
SECONDS = 18
TASKS = 120
PROJECTS = Scale(projects=4, items=5, deeds=40, long_loop=0)
BRIEFLY = (0.5, 3.0)


@pytest.fixture
def installation(amqp_url: str) -> Iterator[Installation]:
    """On a Postgres of its own, which it may kill; RabbitMQ takes long to come back, and others use this one."""
    with restartable_postgres() as postgres, a_network() as network, open_directory() as directory:
        installation = Installation(
            postgres, amqp_url, network, directory, size=Size(apis=1, dispatchers=1, actors=2, threads=6)
        )
        try:
            yield installation
        finally:
            installation.stop()
            print(installation.log())


def places(installation: Installation) -> list[Place]:
    """One fault of each kind."""
    actors = ("actors-1", "actors-2")
    return [
        Place((Kind("kill", (0.1, 0.5)),), ("api-1",)),
        Place((Kind("restart", (0.1, 0.2)),), ("dispatcher-1",)),
        Place((Kind("kill worker"), Kind("freeze worker", BRIEFLY), Kind("kill host", (0.1, 0.3))), actors),
        Place((Kind("kill agent"),), ("an agent",)),
        Place((Kind("kill postgres", (0.1, 0.5)),), ("postgres",)),
        Place((Kind("cut", BRIEFLY), Kind("reset"), Kind("black-hole", BRIEFLY)), tuple(installation.links)),
        Place((Kind("purge queues"),), ("rabbitmq",)),
        Place(kinds.LIMITS, ("leonardo", "openrouter")),
    ]


@pytest.mark.timeout(900)
def test_a_storm_breaks_no_promise(installation: Installation) -> None:
    plan = schedule(SEED, SECONDS, 13, places(installation))
    where, record = installation.api_url, installation.record
    tasks = Load(where, record, Random(f"load {SEED}"), tasks=TASKS, seconds=SECONDS)
    projects = ProjectsLoad(where, record, Random(f"projects {SEED}"), seconds=SECONDS, scale=PROJECTS)
    verdict = Storm(installation, plan, [tasks, projects], seconds=SECONDS).run()
    assert verdict.violations == [], "\n".join(verdict.stories)
    assert len(record.faults) == len(plan)
    assert len(record.accepted) >= TASKS / 2, "there was somebody to be disturbed"
    assert len(record.projects.calls) >= PROJECTS.deeds / 2, "and to be run and stopped"
