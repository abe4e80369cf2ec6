"""A worker is told to stop, condemned, paused or frozen with somebody at every place of its pipeline: nobody is
forgotten, started twice, or left to wait for a lease. `SCENE=failpoints make chaos` goes to one place at a time."""

from collections.abc import Iterator, Sequence

import httpx
import pytest

from tests.acceptance.conftest import a_windlass_apart
from tests.chaos.pipeline.disturbances import ALL_AT_ONCE, WITHOUT_ENDS, play_round
from tests.chaos.pipeline.drill import SETTINGS, Drill
from tests.support.failpoints.arming import Failpoints
from tests.support.servers.private_servers import Servers

BEFORE_ITS_CALLS, AFTER_ITS_CALLS = ALL_AT_ONCE


@pytest.fixture(scope="module")
def drill(
    servers: Servers, migrated_template: str, management: httpx.Client, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Drill]:
    directory = tmp_path_factory.mktemp("pipeline")
    failpoints = Failpoints(directory / "failpoints")
    settings = {**SETTINGS, **failpoints.environment, "PIPELINE_DIRECTORY": str(directory)}
    with a_windlass_apart(
        servers, migrated_template, management, directory, config="", actors=(), **settings
    ) as windlass:
        drill = Drill(windlass)
        drill.start()
        yield drill


@pytest.mark.parametrize(
    ("what", "places"),
    [
        pytest.param("paused", BEFORE_ITS_CALLS, id="paused, before its calls"),
        pytest.param("paused", AFTER_ITS_CALLS, id="paused, after its calls"),
        pytest.param("frozen", AFTER_ITS_CALLS, id="frozen"),
        pytest.param("drained", BEFORE_ITS_CALLS, id="drained"),
        pytest.param("told to stop", BEFORE_ITS_CALLS, id="told to stop, before its calls"),
        pytest.param("told to stop", AFTER_ITS_CALLS, id="told to stop, after its calls"),
        pytest.param("told to stop", WITHOUT_ENDS, id="told to stop, before its last answer"),
        pytest.param("condemned for a deaf thread", AFTER_ITS_CALLS, id="condemned for a deaf thread"),
        pytest.param("condemned for a stuck loop", WITHOUT_ENDS, id="condemned for a stuck loop"),
        pytest.param("paused", ("alone-claim-asked",), id="paused, with a suspect before its claim"),
    ],
)
def test_with_somebody_at_every_place(drill: Drill, what: str, places: Sequence[str]) -> None:
    play_round(drill, what, places)
