"""One task at a time: how long the slot stays empty between two, in Windlass and with Dramatiq's own limiter."""

import itertools
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.deployment import a_windlass, new_database
from bench.flow import HAND_OFFS, PROVIDERS, TASK_SECONDS, Flow
from tests.support.installation import leash
from tests.support.servers.private_servers import Servers

LIMITER_SECONDS = 60
SHORT_BACKOFF = ("200", "1000")
"""Milliseconds: as long as a task, and a second at most. Nobody recommends it; it is what the limiter can do."""


@dataclass(frozen=True)
class HandOff:
    """The share of the time that the slot was held, the median gap in seconds, and how many tasks had it."""

    share: float
    gap: float
    tasks: int


def of_windlass(servers: Servers, directory: Path) -> HandOff:
    config = directory / "hand_off.toml"
    config.write_text(PROVIDERS)
    url = new_database(servers, "windlass_hand_off")
    with a_windlass(url, servers, directory, WINDLASS_CONFIG=str(config)) as windlass:
        windlass.start_all()
        share, gap = Flow(windlass).never_idle()
    return HandOff(share, gap, HAND_OFFS)


def of_the_limiters(servers: Servers) -> list[HandOff]:
    """With Dramatiq's default backoff, and with a short one; both wait most of the time, so they run at once."""
    programs = []
    for queue, backoff in (("limiter_default", ()), ("limiter_short", SHORT_BACKOFF)):
        values = (queue, str(HAND_OFFS), str(TASK_SECONDS), str(LIMITER_SECONDS), *backoff)
        command = [*leash(), sys.executable, "-m", "bench.peers.limiter", servers.amqp_url, *values]
        programs.append(
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True),
        )
    return [_of_a_limiter(program) for program in programs]


def _of_a_limiter(program: "subprocess.Popen[str]") -> HandOff:
    with program:
        output, _ = program.communicate(timeout=LIMITER_SECONDS + 30)
    over, *lines = output.splitlines()
    times = sorted((float(began), float(ended)) for began, ended in map(str.split, lines))
    gaps = [after[0] - before[1] for before, after in itertools.pairwise(times)]
    held = sum(ended - began for began, ended in times)
    # With tasks left over it had the whole time, else only until the last one ended.
    end = float(over) if len(times) < HAND_OFFS else times[-1][1]
    return HandOff(held / (end - times[0][0]), statistics.median(gaps), len(times))
