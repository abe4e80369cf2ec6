"""What an adapter for media promises: an order is taken, refused or in doubt, and nothing is paid for twice."""

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import httpx

from windlass.shared.errors import NotFound, TaskError, Unauthorized
from windlass.shared.providers.base import (
    CannotTell,
    Done,
    Failed,
    Found,
    MediaProvider,
    NotThere,
    Order,
    OrderUnknown,
    Pending,
)
from windlass.shared.providers.conformance.faults import (
    FAULTS,
    KEY,
    Fault,
    check_error,
    check_key_is_hidden,
    client_that_meets,
    status,
)
from windlass.shared.providers.conformance.promise import Broken, Promise, Skipped, answering, described
from windlass.shared.providers.http.download import download
from windlass.shared.providers.params import actions_of
from windlass.shared.providers.placing import prepared
from windlass.shared.providers.registry import Maker
from windlass.shared.toml_tables import Endpoint

UNKNOWN_JOB = "00000000-0000-4000-8000-000000000000"
NOWHERE = Endpoint("https://provider.example/v1", KEY)
STRANGE_BODIES: tuple[Any, ...] = (
    None,
    7,
    "job",
    [],
    ["job"],
    {},
    {"data": None},
    {"data": []},
    {"job_id": {}},
    {"id": 7},
)
AWAY = Fault("", status(503), TaskError)
LARGEST_BYTES = 200_000_000


@dataclass(frozen=True)
class Studio:
    """An adapter to be tried, and where: without an endpoint only what needs none is."""

    name: str
    adapter: Maker
    endpoint: Endpoint | None
    open_client: Callable[[], httpx.AsyncClient]
    poll_seconds: float
    longest_seconds: float

    def order(self) -> Order:
        actions = actions_of(self.adapter)
        action = "txt2img" if actions is None or "txt2img" in actions else next(iter(actions))
        order = Order(action, f"a lighthouse at dusk, {uuid4().hex[:8]}", reference=f"windlass-check-{uuid4().hex}")
        return order if action == "txt2img" else replace(order, source_image=f"{NOWHERE.base_url}/a.png", picture="a")


def media_promises(studio: Studio) -> Iterator[Promise]:
    for fault in FAULTS:
        sentence = f"order: {fault.sentence}"
        if fault.in_doubt:
            sentence = f"order: {fault.sentence.partition(' is ')[0]} leaves it in doubt (OrderUnknown)"
        yield Promise(sentence, partial(_order_meets, studio, fault))
    yield Promise("poll: an error ends no job", partial(_poll_meets, studio))
    yield Promise("find: who cannot ask does not say that nothing was ordered", partial(_find_meets, studio))
    yield Promise("cancel: who cannot ask does not say that the job was stopped", partial(_cancel_meets, studio))
    yield Promise("job_of_callback: a stranger's body names no job and raises nothing", partial(_callbacks, studio))
    yield Promise("order, find, poll: a picture is ordered, found again and fetched", partial(_whole_path, studio))
    yield Promise("poll: a job that nobody knows has failed as NotFound", partial(_unknown_job, studio))
    yield Promise("order: a wrong key is Unauthorized", partial(_wrong_key, studio))


async def _order_meets(studio: Studio, fault: Fault) -> None:
    async with client_that_meets(fault) as http:
        adapter: MediaProvider = studio.adapter(studio.name, NOWHERE, http)
        try:
            await adapter.order(studio.order())
        except OrderUnknown as doubt:
            check_key_is_hidden(doubt)
            if not fault.in_doubt:
                raise Broken("it is in doubt (OrderUnknown), and was certainly not taken") from doubt
        except TaskError as error:
            if fault.in_doubt:
                raise Broken(f"it was {described(error)}: the order would be sent, and paid for, again") from error
            check_error(fault, error)
        else:
            raise Broken("it was told as ordered")


async def _poll_meets(studio: Studio) -> None:
    async with client_that_meets(AWAY) as http:
        try:
            state = await studio.adapter(studio.name, NOWHERE, http).poll("job-1")
        except TaskError as error:
            check_key_is_hidden(error)
        else:
            raise Broken(f"it was told as {type(state).__name__}; an error is raised, and the job asked for again")


async def _find_meets(studio: Studio) -> None:
    async with client_that_meets(AWAY) as http:
        try:
            found = await studio.adapter(studio.name, NOWHERE, http).find(studio.order(), datetime.now(UTC))
        except TaskError as error:
            check_key_is_hidden(error)
        else:
            if not isinstance(found, CannotTell):
                raise Broken(f"it said {type(found).__name__}: an order could be paid for twice")


async def _cancel_meets(studio: Studio) -> None:
    async with client_that_meets(AWAY) as http:
        try:
            stopped = await studio.adapter(studio.name, NOWHERE, http).cancel("job-1")
        except TaskError as error:
            check_key_is_hidden(error)
        else:
            if stopped:
                raise Broken("it said that the provider works on the job no longer")


async def _callbacks(studio: Studio) -> None:
    async with client_that_meets(AWAY) as http:
        adapter: MediaProvider = studio.adapter(studio.name, NOWHERE, http)
        for body in STRANGE_BODIES:
            if (job_id := adapter.job_of_callback(body)) is not None:
                raise Broken(f"{body!r} was taken for the job {job_id!r}")


async def _whole_path(studio: Studio) -> None:
    async with studio.open_client() as http:
        adapter: MediaProvider = studio.adapter(studio.name, answering(studio.endpoint), http)
        order = studio.order()
        if order.source_image is not None:
            raise Skipped("its first action begins with a picture, and there is none to begin with")
        intended_at = datetime.now(UTC)
        ordered = await adapter.order(await prepared(adapter, order))
        found = await adapter.find(order, intended_at)
        if isinstance(found, NotThere):
            raise Broken("find did not find the order: it would be sent, and paid for, again")
        if isinstance(found, Found) and found.job_id != ordered.job_id:
            raise Broken(f"find found {found.job_id}, and the order is {ordered.job_id}")
        end = await _end_of(studio, adapter, ordered.job_id)
        if isinstance(end, Failed):
            raise Broken(f"the job failed: {described(end.error)}")
        if not end.urls:
            raise Broken("the job is done and names no file")
        with TemporaryDirectory(prefix="windlass-check-") as directory:
            await download(http, end.urls[0], Path(directory, "file"), largest_bytes=LARGEST_BYTES, seconds=60)


async def _end_of(studio: Studio, adapter: MediaProvider, job_id: str) -> Done | Failed:
    until = time.monotonic() + studio.longest_seconds
    while isinstance(state := await adapter.poll(job_id), Pending):
        if time.monotonic() > until:
            raise Broken(f"the job {job_id} is still pending after {studio.longest_seconds:g} s")
        await asyncio.sleep(studio.poll_seconds)
    return state


async def _unknown_job(studio: Studio) -> None:
    async with studio.open_client() as http:
        state = await studio.adapter(studio.name, answering(studio.endpoint), http).poll(UNKNOWN_JOB)
    if not (isinstance(state, Failed) and isinstance(state.error, NotFound)):
        raise Broken(f"it was told as {state}; who waits for it would wait for ever")


async def _wrong_key(studio: Studio) -> None:
    wrong = replace(answering(studio.endpoint), api_key="bad-key")
    async with studio.open_client() as http:
        try:
            await studio.adapter(studio.name, wrong, http).order(studio.order())
        except Unauthorized:
            return
    raise Broken("the order was taken all the same")
