"""The pages for those who come from elsewhere: their actors do what the pages say, without servers."""

import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.support.pages import files_of, page
from windlass.services.admin.loading import find
from windlass.shared.actors.taking_over import NOT_TAKEN_OVER
from windlass.shared.settings import Settings
from windlass.testing import attempt

PAGES = ("coming_from_dramatiq.md", "coming_from_celery.md", "coming_from_temporal.md")


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The files of all pages in one directory: no two have the same name."""
    files = [each for name in PAGES for each in files_of(name).items()]
    assert len(dict(files)) == len(files)
    for name, content in files:
        (tmp_path / name).write_text(content)
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


def shown_actor(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


@pytest.mark.usefixtures("shown")
def test_from_dramatiq() -> None:
    resize = shown_actor("our_shop", "resize")
    with attempt(resize, url="a.png", width=32) as run:
        assert run.result == "a.png?width=32"
    with attempt(resize, url="a.txt") as run:
        assert run.status == "dead"


def test_a_dramatiq_actor_is_taken_over_with_its_options(shown: Path) -> None:
    found = find(Settings(config=shown / "windlass.toml"))
    assert not found.mistakes
    (resize,) = [each for each in found.definitions if each.name == "resize"]
    assert (resize.timeout_seconds, resize.max_retries, resize.throws) == (600, 4, ("NoSuchPicture",))
    assert all(f"`{option}`" in page("coming_from_dramatiq.md") for option in NOT_TAKEN_OVER)


@pytest.mark.usefixtures("shown")
def test_from_celery() -> None:
    render = shown_actor("films", "render")
    with attempt(render, title="Dawn", scenes=["sea", "sun"]) as run:
        run.crash_after("scene 1")
        run.again()
        assert run.result == {"title": "Dawn", "scenes": ["sea.png", "sun.png"]}
        assert [(step.name, step.attempt) for step in run.steps] == [("scene 1", 1), ("scene 2", 2)]
    with attempt(render, title="Grey", scenes=["fog"]) as run:
        assert run.status == "retrying"


def test_the_table_that_celery_s_page_shows_is_right(shown: Path) -> None:
    (table,) = [block.partition("```")[0] for block in page("coming_from_celery.md").split("```toml\n")[1:]]
    assert tomllib.loads(table)["actors"]
    (shown / "films.toml").write_text(table)
    found = find(Settings(config=shown / "films.toml"))
    assert not found.mistakes
    assert "render" in {each.name for each in found.definitions}


@pytest.mark.usefixtures("shown")
def test_from_temporal() -> None:
    answer = shown_actor("letters", "answer")
    with attempt(answer, letter="Dear all") as run:
        run.crash_inside("final")
        run.again()
        assert run.result == "final of draft of Dear all"
        assert [(step.name, step.attempt) for step in run.steps] == [("draft", 1), ("final", 2)]
    with attempt(answer, letter="") as run:
        assert (run.status, type(run.error)) == ("dead", ValueError)
