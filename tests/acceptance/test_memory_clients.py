"""Memory and figures by the clients, by the command line and as their page says, in one installation."""

import asyncio
import csv
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

import windlass as library
from tests.acceptance.conftest import a_windlass_apart
from tests.support.agents_at_work import COMMAND
from tests.support.an_api import new_key
from tests.support.command_line import Run, run
from tests.support.installation import KEY, NOBODY, Windlass
from tests.support.pages import files_of, lines_typed, page
from tests.support.servers.private_servers import Servers, open_directory
from tests.support.waiting import wait_until
from windlass.shared import db
from windlass.shared.hashing import hashed
from windlass.shared.settings import Settings
from windlass.shared.store.operating import statistics

__all__ = ["run"]

FILES = files_of("memory.md")


@pytest.fixture(scope="module")
def directory() -> Iterator[Path]:
    """With the files that the page shows, where an agent may read them."""
    with open_directory() as directory:
        for name, content in FILES.items():
            (directory / name).write_text(content)
        yield directory


@pytest.fixture(scope="module")
def windlass(servers: Servers, migrated_template: str, management: httpx.Client, directory: Path) -> Iterator[Windlass]:
    shown = FILES["windlass.toml"].replace("/opt/agents", str(directory)).replace('"python3"', f'"{COMMAND[0]}"')
    config = re.sub(r"^(\[agents\..*\])$", r'\1\nsandbox = "off"', shown, flags=re.MULTILINE)
    settings = {"WINDLASS_DATA_DIR": str(directory / "data"), "WINDLASS_MEMORY_GATHER_SECONDS": "0.2"}
    with a_windlass_apart(
        servers, migrated_template, management, directory, config=config, actors=("agent", "embed"), **settings
    ) as windlass:
        register = [sys.executable, "-m", "windlass.services.admin.register"]
        subprocess.run(register, env={**os.environ, **windlass.environment}, check=True, stdout=subprocess.DEVNULL)
        windlass.start_all()
        yield windlass


@pytest.fixture(scope="module")
def client(windlass: Windlass) -> Iterator[library.Client]:
    with library.Client(windlass.url, KEY) as client:
        yield client


@pytest.fixture
def environment(windlass: Windlass, directory: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("WINDLASS_URL", windlass.url)
    monkeypatch.setenv("WINDLASS_API_KEY", KEY)
    monkeypatch.chdir(directory)
    return dict(os.environ)


@pytest.fixture(scope="module")
def remembered(client: library.Client) -> str:
    """An event that has its vector."""
    task = client.run("agent", {"subagent_type": "surveyor", "prompt": "Number the windmills of Zeeland"})
    wait_for_vectors(client)
    (event,) = client.memory.events(task_id=task.task_id)
    return event.event_id


def wait_for_vectors(client: library.Client) -> None:
    wait_until("all have their vectors", lambda: client.memory.search("windmills").coverage == 1.0, seconds=60)


def keep_figures(windlass: Windlass) -> None:
    """As the janitor does every minute; of yesterday, too, for midnight may have passed meanwhile."""

    async def write() -> None:
        pool = await db.open_pool(Settings(database_url=windlass.environment["WINDLASS_DATABASE_URL"]), "test", most=1)
        try:
            today = datetime.now(UTC).date()
            for day in (today - timedelta(days=1), today):
                await statistics.keep_figures(pool, day)
        finally:
            await pool.close()

    asyncio.run(write())


def test_the_client_finds_reads_and_forgets(windlass: Windlass, client: library.Client, remembered: str) -> None:
    found = client.memory.search("how many windmills has Zeeland?", limit=3, subagent_type="surveyor")
    assert (found.items[0].event.event_id, found.items[0].matched) == (remembered, ("text", "vector"))
    assert found.model is not None
    assert (found.model.name, found.exact, found.degraded) == ("hash-256", True, False)
    event = client.memory.event(remembered)
    assert (event.status, event.data["usage"]["cost_usd"]) == ("completed", 0.02)
    task = client.get(event.task_id)
    assert task.usage_by_attempt is not None
    assert [(each.attempt, each.cost_usd, each.prompt_tokens) for each in task.usage_by_attempt] == [(1, 0.02, 120)]
    assert [each.state for each in client.memory.jobs(state="failed")] == []
    with pytest.raises(library.UnknownProvider):
        client.memory.add_model("other", provider="nobody", dimensions=4)
    (model,) = client.memory.models()
    with pytest.raises(library.ModelActive):
        client.memory.delete_model(model.model_id)
    assert client.memory.activate_model(model.model_id).state == "active"

    passing = client.run("agent", {"subagent_type": "surveyor", "prompt": "This will be forgotten"})
    (forgotten,) = client.memory.events(task_id=passing.task_id)
    with library.Client(windlass.url, new_key(windlass.client, "user", "bob")) as bob:
        with pytest.raises(library.AgentEventNotFound):
            bob.memory.forget(forgotten.event_id)
        assert bob.memory.search("forgotten").items == ()
        assert bob.stats() == ()
        assert bob.memory.models()[0].vectors is None
    client.memory.forget(forgotten.event_id)
    with pytest.raises(library.AgentEventNotFound):
        client.memory.event(forgotten.event_id)


def test_anybody_gets_the_vector_of_a_text_and_nothing_else(client: library.Client) -> None:
    embedded = client.run("embed", {"text": "windmills"})
    assert (embedded.result["model"], embedded.result["vector"]) == ("hash-256", hashed("windmills"))
    assert list(client.memory.events(task_id=embedded.task_id)) == []
    for payload in ({"job_id": str(NOBODY)}, {"model_id": str(NOBODY), "text": "x"}, {}):
        with pytest.raises(library.Forbidden):
            client.submit("embed", payload)


def test_the_asynchronous_client_does_the_same(windlass: Windlass, remembered: str) -> None:
    keep_figures(windlass)

    async def use() -> None:
        async with library.AsyncClient(windlass.url, KEY) as client:
            found = await client.memory.search("windmills")
            assert found.items[0].event.event_id == remembered
            assert remembered in [each.event_id async for each in client.memory.events(subagent_type="surveyor")]
            assert (await client.memory.event(remembered)).title == "Number the windmills of Zeeland"
            assert [each.name for each in await client.memory.models()] == ["hash-256"]
            assert {each.state async for each in client.memory.jobs()} <= {"waiting", "done"}
            days = [each for each in await client.stats(days=2) if each.actor == "agent"]
            assert days
            assert all(each.cost_usd == pytest.approx(0.02 * each.completed) for each in days)
            with pytest.raises(library.NotFound):
                await client.memory.retry_job(NOBODY)

    asyncio.run(use())


@pytest.mark.usefixtures("environment")
def test_the_command_line_shows_and_counts(run: Run, windlass: Windlass, remembered: str) -> None:
    found = run("memory", "search", "windmills", "of", "Zeeland", "--limit", "1")
    assert found.rows[1][:3] == [remembered, "completed", "surveyor"]
    assert found.err.startswith("by words and by hash-256; 100 % of what there is has a vector")
    facts = run("memory", "show", remembered).rows
    assert ["text", "Number the windmills of Zeeland"] in facts
    assert remembered in [row[0] for row in run("memory").rows]
    assert run("memory", "list", "--status", "dead").err == "no agent event is like that\n"
    assert run("memory", "jobs", "--state", "failed").err == "no embedding job is like that\n"
    refused = run("memory", "forget", str(NOBODY))
    assert (refused.code, "[agent-event-not-found]" in refused.err) == (3, True)

    keep_figures(windlass)
    heading, *rows = run("stats", "--by", "user", "--by", "subagent-type", "--days", "2").rows
    assert heading[:4] == ["DAY", "USER", "SUBAGENT TYPE", "CREATED"]
    surveyors, *_ = [row for row in rows if row[2] == "surveyor"]
    assert surveyors[heading.index("COST")].startswith("$0.0")
    table = list(csv.DictReader(io.StringIO(run("stats", "--by", "user", "--csv").out)))
    assert {row["user_id"] for row in table} >= {"admin"}
    assert "is not one of actor, subagent-type, provider, user, project" in run("stats", "--by", "colour").err
    assert "'soon' is not a day like 2026-07-01" in run("stats", "--from", "soon").err
    listed = run("list", "--limit", "50").rows
    assert "$0.02" in [row[listed[0].index("COST")] for row in listed[1:]]


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page calls curl, which is not installed")
def test_the_page_does_what_it_says(
    windlass: Windlass,
    client: library.Client,
    environment: dict[str, str],
    run: Run,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = page("memory.md")
    known = {"KEY": KEY}
    for line in lines_typed("memory.md"):
        variable, command = line.split("=", 1) if re.match(r"[A-Z]+=", line) else ("", line)
        command = command.replace("http://127.0.0.1:8800", windlass.url)
        filled = re.sub(r"\$([A-Z]+)", lambda found: known[found[1]], command).partition(" > ")[0]
        if filled.startswith("curl"):
            keep_figures(windlass)
            subprocess.run(shlex.split(filled), env=environment, stdout=subprocess.DEVNULL, check=True)
            continue
        if filled.startswith("windlass memory search"):
            wait_for_vectors(client)
        done = run(*shlex.split(filled.removeprefix("$(").removesuffix(")"))[1:])
        assert done.code == 0, (line, done)
        known[variable] = done.out.strip()
        if "search" in line:
            assert done.out.splitlines()[1].endswith("Count the lighthouses of Norway")
    assert "recall" in run("events", known["TASK"], "--type", "recall").out
    assert run("watch", known["TASK"]).err == "", "the analyst says nothing of its cost"
    (told,) = client.list(user_id="system", actor="agent")
    daily = client.wait(told.task_id, timeout=60)
    assert (daily.status, "admin" in daily.result["users"], daily.result["known_before"]) == ("completed", True, [])
    assert "Count the lighthouses of Norway" in client.get(known["TASK"]).result["known_before"]
    counted = next(each for each in client.memory.events() if each.title.startswith("Count the lighthouses"))
    assert run("watch", counted.task_id).err.startswith("it cost $0.02, 120 prompt tokens, 30")
    (program,) = re.findall(r"(?<!\*\*\n\n)```python\n(.*?)```", text, re.DOTALL)
    exec(program, {})
    first, *days = capsys.readouterr().out.splitlines()
    assert first == "Count the lighthouses of Norway ('text', 'vector')"
    assert [line for line in days if " admin 0." in line]
