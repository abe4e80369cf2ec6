"""The third part of `SCENE=failpoints make chaos`: a worker's own pipeline, with something that happens to the worker
while somebody stands at each place of it."""

import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tests.acceptance.conftest import a_windlass
from tests.chaos.pipeline.disturbances import ALL_AT_ONCE, DISTURBANCES, WITHOUT_ENDS, play_round
from tests.chaos.pipeline.drill import SETTINGS, Drill
from tests.support.failpoints.arming import Failpoints
from tests.support.failpoints.catalogue import OF_THE_LONER, PIPELINE, STOP_HEARD
from tests.support.servers.databases import migrate
from tests.support.servers.private_servers import open_directory, throw_away_servers

PLACES = (*PIPELINE, *OF_THE_LONER)
AT_EACH_PLACE = ("paused", "frozen", "told to stop", "killed")
WITHOUT_A_STOP = ("paused", "frozen")


def rounds() -> list[tuple[str, Sequence[str]]]:
    """What happens, and the places at which somebody stands: at all that can be taken together, and at one alone."""
    together = [(what, places) for what in DISTURBANCES if what != "killed" for places in (*ALL_AT_ONCE, WITHOUT_ENDS)]
    alone = [
        (what, (place,))
        for place in PLACES
        for what in AT_EACH_PLACE
        if place != STOP_HEARD or what not in WITHOUT_A_STOP
    ]
    return [*together, *alone]


@contextmanager
def a_drill() -> Iterator[Drill]:
    with throw_away_servers() as servers, open_directory() as directory:
        migrate(servers.database_url)
        failpoints = Failpoints(directory / "failpoints")
        settings = {**SETTINGS, **failpoints.environment, "PIPELINE_DIRECTORY": str(directory)}
        with a_windlass(
            servers.database_url, servers.amqp_url, directory, config="", actors=(), **settings
        ) as windlass:
            drill = Drill(windlass)
            drill.start()
            yield drill


def play(say: Callable[[str], None]) -> bool:
    """Whether every one of them went well. After one that did not there is another installation."""
    everything, went_wrong = rounds(), 0
    say(f"a worker that is {', '.join(DISTURBANCES)}, {len(everything)} times, at these {len(PLACES)} places:")
    for place in PLACES:
        say(f"  {place}")
    while everything:
        with a_drill() as drill:
            while everything:
                what, places = everything.pop(0)
                where = places[0] if len(places) == 1 else f"{len(places)} places at once"
                began = time.monotonic()
                try:
                    play_round(drill, what, places)
                except AssertionError as error:
                    went_wrong += 1
                    say(
                        f"{time.monotonic() - began:5.1f} s  {what}, {where}: BROKEN: {error or traceback.format_exc()}"
                    )
                    break
                say(f"{time.monotonic() - began:5.1f} s  {what}, {where}: each once, and nobody forgotten")
    return not went_wrong
