"""An api for the tests of streams, with nothing but Postgres behind it: the tests themselves are the workers."""

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.conftest import a_database
from tests.support.engine.store import Engine, an_engine
from tests.support.event_reader import Event, EventReader, reading
from tests.support.installation import START_SECONDS, Windlass, answers
from tests.support.servers.private_servers import Servers
from tests.support.waiting import wait_until
from windlass.shared.store.access import keys
from windlass.shared.store.tasks import Claimed

SETTINGS = {
    "WINDLASS_SAFETY_POLL_SECONDS": "0.5",
    "WINDLASS_STREAM_PING_SECONDS": "0.3",
    "WINDLASS_STREAM_PATIENCE_SECONDS": "5",
    "WINDLASS_CORS_ORIGINS": "https://page.example",
}
ANN = "wl_annann_abcdefghijklmnopqrstuvwxyz"


@pytest.fixture(scope="module")
def api(servers: Servers, migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Windlass]:
    with a_database(servers, migrated_template) as url:
        yield from running_api(url, tmp_path_factory.mktemp("api"))


def running_api(database_url: str, directory: Path) -> Iterator[Windlass]:
    windlass = Windlass(database_url, "amqp://nobody", directory, **SETTINGS)
    try:
        windlass.api = windlass.start("api")
        wait_until("an api", lambda: answers(windlass.client), seconds=START_SECONDS)
        yield windlass
    finally:
        windlass.stop()
        print(windlass.log())


def with_workers(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Runs an async test that gets the api and an engine on its database, by which it does what workers do."""
    signature = inspect.signature(test)

    @functools.wraps(test)
    def run(api: Windlass, **arguments: Any) -> None:
        async def whole() -> None:
            async with an_engine(api.environment["WINDLASS_DATABASE_URL"]) as engine, asyncio.timeout(180):
                await keys.ensure(engine.pool, ANN, role="user", user_id="ann", created_by="test")
                await test(api, engine, **arguments)

        asyncio.run(whole())

    del run.__wrapped__
    parameters = [each for name, each in signature.parameters.items() if name != "engine"]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


def story_of(port: int, task_id: UUID, **options: Any) -> AbstractAsyncContextManager[EventReader]:
    """The stream of one task; `after=` and `token=` go into the URL."""
    return reading(port, f"/api/v1/tasks/{task_id}/stream{query(options)}", **options)


def stories(port: int, **options: Any) -> AbstractAsyncContextManager[EventReader]:
    """The stream of many tasks; filters go into the URL."""
    return reading(port, f"/api/v1/stream{query(options)}", **options)


def query(options: dict[str, Any]) -> str:
    """Takes out of the options what belongs into the URL."""
    pairs = []
    for name in ("after", "token", "task_id", "project_id", "workflow_id", "user_id", "only"):
        values = options.pop(name, [])
        pairs += [f"{name}={value}" for value in (values if isinstance(values, list) else [values])]
    return "?" + "&".join(pairs) if pairs else ""


async def progress(engine: Engine, attempt: Claimed, message: str) -> None:
    said = {"elapsed_ms": 1, "message": message, "percent": None, "updated_at": "2026-07-01T12:00:00+00:00"}
    event = {"type": "progress", "data": {"status": "running", "progress": said}}
    assert await engine.say(attempt, progress=said, events=[event])


async def output(engine: Engine, attempt: Claimed, text: str) -> None:
    assert await engine.say(attempt, events=[{"type": "output", "data": {"text": text}}])


async def two_lives(engine: Engine) -> UUID:
    """A task that died, was revived, was tried again, and completed: every kind of event."""
    first = await engine.running()
    await progress(engine, first, "half way")
    await output(engine, first, "one\ntwo")
    assert await engine.finish(first, "bury") == "dead"
    assert await engine.revive(first.task_id) == "queued"
    second = await engine.start(first.task_id)
    await output(engine, second, "three")
    assert await engine.finish(second, "retry") == "retrying"
    await engine.become_due(first.task_id)
    third = await engine.start(first.task_id)
    assert await engine.finish(third, result={"answer": 42}) == "completed"
    return first.task_id


def names(events: list[Event]) -> list[str]:
    return [event.name for event in events]
