"""docs/adding_a_feature.md, followed in a copy of the tree: its files are written, its changes applied, a database is
migrated, and tasks with tags are run through the engine."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from litestar.datastructures import State
from sqlalchemy.ext.asyncio import create_async_engine
from sqlmodel import SQLModel

import windlass.shared.models  # noqa: F401 - declares the tables
from tests.support.engine.outbox import pending, relays
from tests.support.engine.store import Engine, an_engine, until
from tests.support.installation import PROJECT
from tests.support.pages import files_of, page
from windlass.services.api.access.auth import Caller
from windlass.shared.actors.new_task import NewTask
from windlass.shared.db import Database
from windlass.shared.features.catching_up import CatchUp
from windlass.shared.features.handling import handle_pending
from windlass.shared.features.registry import FEATURES
from windlass.shared.migrations.runner import migrate, newest_revision
from windlass.shared.settings import Settings
from windlass.shared.store.outbox import Move
from windlass.shared.submission.known import built_in_actors
from windlass.shared.submission.rules import submission_of

PAGE = page("adding_a_feature.md")
DIFFS = re.findall(r"^```diff\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
(GLOBAL_SUBSCRIPTION,) = re.findall(r"^```sql\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
NAMES = ("schedules", "projects", "workflows", "webhooks", "memory")
HOMES = re.findall(r"^\| `([^`]*NAME[^`]*)` \|", PAGE, re.MULTILINE)
OTHER_PLACES = re.findall(r"`((?:services|shared)/[\w./]+)`", PAGE.partition("| also in |")[2])

CHANGED = ("shared", "services", "windlass")
CACHES = shutil.ignore_patterns("__pycache__")
RUN = """
import asyncio, sys
from tests.integration import test_adding_a_feature as followed
asyncio.run(getattr(followed, sys.argv[1])(sys.argv[2]))
"""
A_MIGRATION = "shared/migrations/versions/0039_tag_counts.py"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree with what the page adds."""
    tree = tmp_path_factory.mktemp("feature")
    for name in CHANGED:
        shutil.copytree(PROJECT / name, tree / name, symlinks=True, ignore=CACHES)
    for name in ("tests", "docs", "pyproject.toml"):
        (tree / name).symlink_to(PROJECT / name)
    for name, text in files_of("adding_a_feature.md").items():
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).write_text(with_the_next_number(text) if name == A_MIGRATION else text)
    for diff in DIFFS:
        run(["git", "apply", "-"], tree, text=diff)
    return tree


def with_the_next_number(migration: str) -> str:
    """The number on the page is the next one only until another migration is added."""
    newest = newest_revision()
    return migration.replace('"0039"', f'"{int(newest) + 1:04}"').replace('"0038"', f'"{newest}"')


def run(command: Sequence[str], tree: Path, *, text: str | None = None) -> None:
    environment = {**os.environ, "PYTHONPATH": str(tree), "GIT_CEILING_DIRECTORIES": str(tree.parent)}
    done = subprocess.run(
        command, cwd=tree, env=environment, input=text, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def run_in(tree: Path, function: str, database_url: str) -> None:
    """Runs a function of this module in a process that imports the copy."""
    run([sys.executable, "-c", RUN, function, database_url], tree)


@pytest.mark.parametrize(
    "function", ["counts_each_completion_once", "follows_all_tasks", "reads_catch_up", "declares_what_is_migrated"]
)
def test_the_feature_of_the_page(function: str, tree: Path, database_url: str) -> None:
    run_in(tree, function, database_url)


def test_the_code_of_the_page_is_typed_and_formatted(tree: Path) -> None:
    python = [name for name in files_of("adding_a_feature.md") if name.endswith(".py")]
    changed = re.findall(r"^\+\+\+ b/(.*)$", "".join(DIFFS), re.MULTILINE)
    ruff = str(Path(sys.executable).with_name("ruff"))
    run([ruff, "check", "--no-cache", *python, *changed], tree)
    run([ruff, "format", "--no-cache", "--check", *python, *changed], tree)
    modules = [f"windlass.{name.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}" for name in python]
    of_each = [word for module in modules if "versions" not in module for word in ("-m", module)]
    mypy = ("mypy", "--strict", "--follow-imports", "silent", "--cache-dir", os.devnull)
    run([sys.executable, "-m", *mypy, *of_each], tree)


def test_each_feature_is_where_the_page_shows_it() -> None:
    assert len(HOMES) == 7
    homes = [home.replace("NAME", name) for home in HOMES for name in NAMES]
    assert [home for home in (*homes, *OTHER_PLACES) if not (PROJECT / home).exists()] == []


# What runs in the copy


async def counts_each_completion_once(database_url: str) -> None:
    await migrate(database_url)
    async with an_engine(database_url) as engine:
        tag_counts = feature()
        red = [await engine.completed(**submitted(tags)) for tags in (["red", "blue"], ["red"])]
        plain, failed = await engine.completed(**submitted([])), await engine.dead(**submitted(["red"]))
        assert await pending(engine) == 3, "of the tasks with tags"
        subjects = [*red, plain, failed]

        refused = replace(tag_counts, handle=refusing(tag_counts.handle))
        assert set((await handle_pending(engine.pool, refused, subjects)).failed) == {*red, failed}
        assert (await counts(engine), await pending(engine)) == ({}, 3)

        assert (await handle_pending(engine.pool, tag_counts, subjects)).rows == 3
        assert (await handle_pending(engine.pool, tag_counts, subjects)).rows == 0
        assert (await counts(engine), await pending(engine)) == ({"blue": 1, "red": 2}, 0)

        async with relays(engine, tag_counts, number=2):
            for number in range(20):
                await engine.completed(**submitted(["red", "blue"] if number % 2 else ["blue", "red"]))
            await until(lambda: is_handled(engine), seconds=20)
        assert await counts(engine) == {"blue": 21, "red": 22}

        assert await engine.revive(failed) == "queued"
        await engine.finish(await engine.start(failed))
        assert (await handle_pending(engine.pool, tag_counts, [failed])).rows == 2
        assert await counts(engine) == {"blue": 21, "red": 23}


async def follows_all_tasks(database_url: str) -> None:
    await migrate(database_url)
    summary = {"actor": "summarize", "provider": "model", "tags": ["red"]}
    async with an_engine(database_url) as engine:
        await engine.provide("model", limit=None, actors=["summarize"])
        await engine.completed(**summary)
        assert await pending(engine) == 0
        for _ in range(2):
            await engine.sql(GLOBAL_SUBSCRIPTION)
        await engine.completed(tags=["red"])
        assert await pending(engine) == 0, "the actor `probe` is left out"
        task_id = await engine.completed(**summary)
        assert (await handle_pending(engine.pool, feature(), [task_id])).rows == 1
        assert await counts(engine) == {"red": 1}


async def reads_catch_up(database_url: str) -> None:
    """Through the handler of the page, without an orchestrator."""
    handlers = import_module("windlass.services.api.tag_counts.handlers")
    await migrate(database_url)
    async with an_engine(database_url) as engine:
        state = State({"pool": engine.pool, "catch_up_on_tag_counts": CatchUp(engine.pool, feature())})
        asked = type("Request", (), {"user": an_admin()})
        assert await handlers.get_tag_counts.fn(asked, state) == {}
        await engine.completed(**submitted(["red"]))
        assert await handlers.get_tag_counts.fn(asked, state) == {"red": 1}


async def declares_what_is_migrated(database_url: str) -> None:
    await migrate(database_url)
    engine = create_async_engine(database_url.replace("postgresql://", "postgresql+asyncpg://", 1))
    async with engine.connect() as connection:
        context = {"compare_type": True, "compare_server_default": True}
        found = await connection.run_sync(
            lambda own: compare_metadata(MigrationContext.configure(own, opts=context), SQLModel.metadata)
        )
    await engine.dispose()
    assert "tag_counts" in SQLModel.metadata.tables
    assert [each for each in found if "tag_counts" in str(each)] == []


def feature() -> Any:
    """As the orchestrator of the copy has it."""
    (found,) = (each for each in FEATURES if each.name == "tag_counts")
    return found


def refusing(handle: Any) -> Any:
    async def handle_and_fail(db: Database, moves: Sequence[Move]) -> None:
        await handle(db, moves)
        raise ValueError("refused")

    return handle_and_fail


def submitted(tags: list[str]) -> dict[str, Any]:
    """What the rules of a submission write into a task with these tags."""
    checked = submission_of(NewTask(actor="probe", tags=tags), an_admin(), Settings(), built_in_actors())
    return {"tags": tags, "concerns": checked.concerns or 0}


def an_admin() -> Caller:
    return Caller(key_id="test", user_id="ann", role="admin")


async def counts(engine: Engine) -> dict[str, int]:
    queries = import_module("windlass.shared.features.tag_counts.queries")
    found: dict[str, int] = await queries.counts(engine.pool)
    return found


async def is_handled(engine: Engine) -> bool:
    return await pending(engine) == 0
