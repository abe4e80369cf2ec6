"""What a call of an actor becomes when it is submitted, and what its result is read as: a type checker agrees."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, assert_type

import pytest
from pydantic import BaseModel

from windlass import AsyncClient, Client, Context, Task, UnreadableAnswer, actor
from windlass.client.declared import asked_for, fields_of_a_call, with_its_result
from windlass.client.errors import NotConfigured
from windlass.client.target import Target
from windlass.typed_json import plain


class Order(BaseModel):
    account: str
    pages: int = 1


@dataclass
class Size:
    width: int
    height: int


@actor
async def translate(text: str, to: str = "en", *, context: Context) -> str:
    return f"{text} {to} {context.attempt}"


@actor
def resize(url: str, tags: list[str]) -> Size:
    return Size(len(url), len(tags))


@actor
def settle(order: Order, context: Context | None = None) -> Order:
    return order


@actor
def corners(url: str) -> tuple[int, int]:
    return len(url), 0


def types_of_results(client: Client) -> None:
    """Never called: mypy reads it, and `make check` fails when it finds another type."""
    assert_type(client.run(translate, text="hi"), Task[str])
    assert_type(client.run(translate, text="hi").result, str)
    assert_type(client.submit(resize, {"url": "u", "tags": []}, priority=1), Task[Size])
    assert_type(client.run("translate", {"text": "hi"}, priority=1).result, Any)
    assert_type(translate.send(text="hi"), Task[str])
    assert_type(settle.send_with_options(kwargs={"account": "a"}, delay_seconds=5), Task[Order])
    client.run("translate", priorty=1)  # type: ignore[call-overload]
    client.run(Order, account="a")  # type: ignore[call-overload]


async def types_of_awaited_results(client: AsyncClient) -> None:
    assert_type((await client.run(translate, text="hi")).result, str)
    assert_type(await client.submit(corners, url="u"), Task[tuple[int, int]])


def test_fields_may_stand_among_the_options() -> None:
    said = {"text": "hi", "priority": 1, "delay_seconds": 5}
    assert asked_for(translate, (), said) == ("translate", {"text": "hi"}, {"priority": 1, "delay_seconds": 5})
    assert asked_for(translate, ({"text": "hi"},), {"priority": 1}) == ("translate", {"text": "hi"}, {"priority": 1})
    assert asked_for(translate, ("hi",), {"to": "fr"}) == ("translate", {"text": "hi", "to": "fr"}, {})
    assert asked_for(settle, (Order(account="a"),), {})[1] == {"account": "a", "pages": 1}
    assert asked_for("translate", (), {"priority": 1}) == ("translate", None, {"priority": 1})


def test_a_field_that_is_called_as_an_option_has_to_be_given_apart() -> None:
    with pytest.raises(TypeError, match=r"tags is a field of resize and an option of its task; .*\{'tags': …\}"):
        asked_for(resize, (), {"url": "u", "tags": ["a"]})
    assert asked_for(resize, ({"url": "u", "tags": ["a"]},), {"tags": ["b"]})[1:] == (
        {"url": "u", "tags": ["a"]},
        {"tags": ["b"]},
    )


def test_arguments_are_named_as_the_function_names_them() -> None:
    assert translate.fields == ("text", "to")
    assert fields_of_a_call(translate, ("hi",), {"to": "fr"}) == {"text": "hi", "to": "fr"}
    with pytest.raises(TypeError, match="translate takes 2 fields, and 3 were given"):
        fields_of_a_call(translate, ("hi", "fr", "more"), {})
    with pytest.raises(TypeError, match="translate was given text twice"):
        fields_of_a_call(translate, ("hi",), {"text": "ho"})


@pytest.mark.parametrize("given", [((Order(account="a"),), {}), ((), {"order": Order(account="a")})])
def test_one_model_may_be_given_whole(given: tuple[tuple[Any, ...], dict[str, Any]]) -> None:
    assert settle.fields == ("order",)
    assert fields_of_a_call(settle, *given) == {"account": "a", "pages": 1}
    assert asked_for(settle, (), {"order": Order(account="a")})[1] == {"account": "a", "pages": 1}


def test_a_model_inside_a_payload_is_written_as_json() -> None:
    assert plain(Order(account="a")) == {"account": "a", "pages": 1}


def test_what_is_no_actor_is_refused() -> None:
    with pytest.raises(TypeError, match="has it an @actor before it"):
        asked_for(types_of_results, (), {})  # type: ignore[arg-type]


def done(result: Any) -> Task:
    return Task(task_id="t-1", actor="any", status="completed", result=result)


@pytest.mark.parametrize(
    ("of", "document", "result"),
    [
        (translate, "salut", "salut"),
        (resize, {"width": 1, "height": 2}, Size(1, 2)),
        (settle, {"account": "a"}, Order(account="a")),
        (corners, [1, 2], (1, 2)),
        ("corners", [1, 2], [1, 2]),
        (settle, None, None),
    ],
)
def test_a_result_is_what_the_annotation_says(of: Any, document: Any, result: Any) -> None:
    assert with_its_result(of, done(document)).result == result


def test_a_result_that_is_something_else_is_told() -> None:
    with pytest.raises(UnreadableAnswer, match="task t-1 has completed, and its result is not what translate promises"):
        with_its_result(translate, done(3))
    with pytest.raises(UnreadableAnswer, match="account"):
        with_its_result(settle, done({"pages": 3}))


@actor
def strange(url: str) -> "Iterator[Path]":
    yield Path(url)


def test_an_annotation_that_says_nothing_about_json_is_left_alone() -> None:
    assert with_its_result(strange, done([1])).result == [1]


class Here:
    """A data directory as `windlass up` leaves it."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        (directory / "run.json").write_text('{"api": {"url": "http://127.0.0.1:9"}}')
        (directory / "admin_key").write_text("wl_here_key\n")


def chosen(url: str | None = None, key: str | None = None) -> tuple[str, str]:
    target = Target.choose(url, key, 1)
    return target.url, target.key


def test_what_runs_here_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotConfigured, match=r"set WINDLASS_URL.*no `windlass up` runs on .*/\.windlass"):
        chosen()
    Here(tmp_path / ".windlass")
    assert chosen() == ("http://127.0.0.1:9", "wl_here_key")
    with pytest.raises(NotConfigured, match="no key"):
        chosen("http://127.0.0.1:8")  # its key is for nobody else
    assert chosen("http://127.0.0.1:8", "wl_a_b") == ("http://127.0.0.1:8", "wl_a_b")


def test_where_it_runs_may_be_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Here(tmp_path / "data")
    (tmp_path / "windlass.toml").write_text('data_dir = "data"')
    monkeypatch.setenv("WINDLASS_CONFIG", "windlass.toml")
    assert chosen() == ("http://127.0.0.1:9", "wl_here_key")
    monkeypatch.setenv("WINDLASS_DATA_DIR", "nowhere")
    with pytest.raises(NotConfigured, match="nowhere"):
        chosen()


LIGHT = """
import sys
import windlass
windlass.actor
print(sorted({"httpx", "pydantic", "dramatiq"} & sys.modules.keys()))
"""


def test_declaring_an_actor_loads_no_client() -> None:
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


THREADS = """
import os
from concurrent.futures import ThreadPoolExecutor
from windlass.client.default import default_client

with ThreadPoolExecutor(8) as threads:
    clients = {id(each) for each in threads.map(lambda _: default_client(), range(64))}
before = default_client()
child = os.fork()
if child == 0:
    os._exit(default_client() is before)
print(len(clients), os.waitpid(child, 0)[1])
"""


def test_each_process_has_one_client_for_all_threads() -> None:
    variables = {"WINDLASS_URL": "http://127.0.0.1:9", "WINDLASS_API_KEY": "wl_a_b", "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", THREADS], capture_output=True, text=True, check=True, timeout=60, env=variables
    )
    assert (done.stdout.strip(), done.stderr) == ("1 0", "")
