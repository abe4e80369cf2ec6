"""From submit to start on an idle system: the submitter's clock before the call, against the start inside the task."""

import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from bench.deployment import a_windlass, new_database, start_all
from bench.peers.__main__ import SAMPLE_SECONDS
from bench.peers.line_up import Entrant
from bench.peers.notes import read
from bench.peers.running import RunningPeer
from tests.support.installation import Windlass
from tests.support.servers.private_servers import Servers
from tests.support.waiting import wait_until

NOTING = "bench.peers.noting_worker"
SAMPLES = 100
WARM_UP = 5
"""The first ones meet connections that are still being made."""


@dataclass(frozen=True)
class Latency:
    """In seconds."""

    p50: float
    p99: float


def of_a_peer(entrant: Entrant, setting: str, servers: Servers, directory: Path, run: str) -> Latency:
    notes = directory / f"{run}.notes"
    peer = RunningPeer(entrant, servers, directory, run)
    with peer.working(entrant.settings[setting]):
        peer.sample(directory / f"{run}.first", WARM_UP)
        wait_until("warm", lambda: len(read(directory / f"{run}.first")) == WARM_UP)
        submitted = peer.sample(notes, SAMPLES)
        return between(submitted, notes)


def of_windlass(servers: Servers, directory: Path) -> Latency:
    """Over its HTTP API, one request a task."""
    with a_windlass(new_database(servers, "windlass_starts"), servers, directory) as windlass:
        start_all(windlass, actors=NOTING)
        wait_until("a worker", windlass.client.workers)
        notes = directory / "windlass.notes"
        submitted = {}
        for key in range(-WARM_UP, SAMPLES):
            submitted[key] = time.time()
            windlass.client.submit(payload={"result": {"notes": str(notes), "key": key}})
            time.sleep(SAMPLE_SECONDS)
        return between({key: at for key, at in submitted.items() if key >= 0}, notes)


def one_by_one(windlass: Windlass, samples: int, *, seconds: float = 0, **fields: Any) -> Latency:
    """Of a Windlass whose actors note, however busy it is: each task is submitted when the last one has ended."""
    notes = windlass.directory / f"{uuid4()}.notes"
    submitted = {}
    for key in range(samples):
        payload = {"seconds": seconds, "result": {"notes": str(notes), "key": key}}
        submitted[key] = time.time()
        task = windlass.client.submit(payload=payload, **fields)
        windlass.client.finished(task["task_id"])
    return between(submitted, notes)


def between(submitted: dict[int, float], notes: Path) -> Latency:
    """Every one of them has started, once."""
    wait_until("all started", lambda: {start.key for start in read(notes)} >= submitted.keys())
    waited = sorted(start.at - submitted[start.key] for start in read(notes) if start.key in submitted)
    assert len(waited) == len(submitted)
    return Latency(statistics.median(waited), waited[len(waited) * 99 // 100 - 1])
