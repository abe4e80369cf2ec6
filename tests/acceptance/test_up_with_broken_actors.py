"""`windlass up --actors` with a file that cannot be loaded: the mistake is reported before any server starts."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.servers.private_servers import new_directory
from tests.support.up import WindlassUp
from tests.support.waiting import wait_until

GOOD = """
from windlass import actor


@actor
def greet(name: str) -> str:
    return name
"""
BROKEN = {
    "missing file": (None, "there is no file {file}"),
    "syntax error": ("def f(:\n", "SyntaxError: invalid syntax ({file}, line 1)"),
    "missing package": ("\nimport not_here\n", "needs not_here, which is not installed here ({file}, line 2)"),
    "bad signature": (GOOD.replace("name: str", "name"), "parameter name has no annotation"),
    "wrong option": (GOOD.replace("@actor", "@actor(timeout_seconds=-1)"), "above 0 ({file}, line 5)"),
}


@pytest.fixture
def file() -> Iterator[Path]:
    directory = new_directory()
    (directory / "own").mkdir()
    yield directory / "own/our_actors.py"
    shutil.rmtree(directory)


def up_with(file: Path, *options: str) -> WindlassUp:
    return WindlassUp(file.parents[1] / "data").with_arguments("--actors", str(file), *options)


@pytest.mark.parametrize(("source", "sentence"), BROKEN.values(), ids=BROKEN)
def test_it_ends_before_a_server_starts_and_names_file_and_line(file: Path, source: str | None, sentence: str) -> None:
    if source is not None:
        file.write_text(source)
    up = up_with(file)
    up.begin()
    assert up.wait() == 1
    (line,) = up.log.splitlines()
    assert "cannot load the actors: " in line
    assert sentence.format(file=file) in line
    assert str(file) in line
    assert not (up.directory / "postgres").exists()


def test_with_reload_it_shows_the_mistake_last_and_starts_after_the_file_is_mended(
    file: Path, database_url: str, amqp_url: str
) -> None:
    file.write_text("import not_here\n")
    up = up_with(file, "--reload").with_settings(WINDLASS_DATABASE_URL=database_url, WINDLASS_AMQP_URL=amqp_url)
    up.begin()
    try:
        wait_until("it reports the mistake", lambda: "needs not_here" in up.log)
        assert f"waiting for a change below {file.parent}" in up.log
        assert f"({file}, line 1)" in up.log.splitlines()[-1]
        file.write_text(GOOD)
        wait_until("it is ready", lambda: "windlass ready" in up.output or not up.is_running, seconds=120)
        with up.client() as client:
            done = client.post("/api/v1/tasks/greet", json={"name": "Ann"}, params={"wait": 50})
        assert done.json()["result"] == "Ann"
    finally:
        up.make_sure_that_it_has_stopped()
