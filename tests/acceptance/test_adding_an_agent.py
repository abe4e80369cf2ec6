"""docs/adding_an_agent.md, followed to the letter: its files are written, and its agents are put to work."""

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.acceptance.conftest import a_windlass_apart
from tests.support.command_line import Run, run
from tests.support.installation import KEY, Client, Task, Windlass
from tests.support.pages import files_of, page
from tests.support.servers.private_servers import Servers, open_directory
from tests.support.shown_commands import blocks_of

__all__ = ["run"]

PAGE = page("adding_an_agent.md")
ORDER = re.compile(r"^```json\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MIRRORS = """
[agents.mirror]
command = ["/bin/cat"]

[agents.environment]
command = ["/usr/bin/env"]
"""


@pytest.fixture(scope="module")
def windlass(servers: Servers, migrated_template: str, management: httpx.Client) -> Iterator[Windlass]:
    """What the page says, but for the place of the files, and without a sandbox where none can be made."""
    with open_directory() as directory:
        files = files_of("adding_an_agent.md")
        assert files.keys() == {"agents/speller.py", "agents/stairs.sh", "windlass.toml"}
        config = files.pop("windlass.toml").replace("/opt/agents", str(directory / "agents")) + MIRRORS
        (directory / "agents").mkdir(mode=0o755)
        for name, content in files.items():
            (directory / name).write_text(content)
            (directory / name).chmod(0o644)
        settings = {"WINDLASS_AGENT_SANDBOX": "best-effort", "WINDLASS_DATA_DIR": str(directory / "data")}
        with a_windlass_apart(
            servers, migrated_template, management, directory, config=config, actors=("agent",), **settings
        ) as windlass:
            windlass.start_all()
            yield windlass


@pytest.fixture
def client(windlass: Windlass) -> Client:
    return windlass.client


def done_by(client: Client, agent: str, prompt: str, *, params: dict[str, Any] | None = None, **options: Any) -> Task:
    payload = {"subagent_type": agent, "prompt": prompt, "params": params or {}}
    return client.finished(client.submit(actor="agent", payload=payload, **options)["task_id"])


def said(client: Client, task: Task, stream: str | None = None) -> str:
    told = [each["data"] for each in client.events(task["task_id"]) if each["type"] == "output"]
    return "".join(each["text"] for each in told if each.get("stream") == stream)


def latest_progress(client: Client, task: Task) -> tuple[float, str]:
    told = [each["data"]["progress"] for each in client.events(task["task_id"]) if each["type"] == "progress"]
    return told[-1]["percent"], told[-1]["message"]


def test_ten_lines_of_python(client: Client) -> None:
    task = done_by(client, "speller", "one two three")
    assert (task["status"], task["exit_code"], task["result"]) == ("completed", 0, {"words": 3})
    assert said(client, task) == 'one\ntwo\nthree\n{"words": 3}\n'
    assert latest_progress(client, task) == (100, "Word 3")


def test_it_is_submitted_and_watched(windlass: Windlass, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDLASS_URL", windlass.url)
    monkeypatch.setenv("WINDLASS_API_KEY", KEY)
    *_, command = "".join(blocks_of("adding_an_agent.md")).splitlines()
    done = run(*shlex.split(command)[1:])
    assert done.code == 0, done
    assert "Word 3" in done.out + done.err


def test_ten_lines_of_shell(client: Client) -> None:
    task = done_by(client, "stairs", "up")
    assert (task["status"], task["result"]) == ("completed", {"climbed": 3, "for": task["task_id"]})
    assert said(client, task).startswith("step 1\nstep 2\nstep 3\n{")
    assert "usage" not in said(client, task)
    assert task["usage"] == {"prompt_tokens": 12, "completion_tokens": 3, "cost_usd": 0.0004}
    assert said(client, task, "stderr") == "careful on step 1\ncareful on step 2\ncareful on step 3\n"
    assert latest_progress(client, task) == (100, "On step 3")


def test_an_agent_that_was_cut_off_goes_on_from_what_it_had_printed(client: Client) -> None:
    task = done_by(client, "speller", "a b c d e f", params={"pause": 0.25}, timeout_seconds=1, max_retries=9)
    assert (task["status"], task["result"]) == ("completed", {"words": 6})
    assert task["attempt"] > 1
    words, results = said(client, task).splitlines()[:6], said(client, task).splitlines()[6:]
    assert words == ["a", "b", "c", "d", "e", "f"]
    assert set(results) == {'{"words": 6}'}, "more than once if it was cut off between its last word and its end"


@pytest.mark.parametrize(
    ("agent", "prompt", "message", "exit_code"),
    [
        ("speller", "one nonsense", "word 2 is nonsense", 1),
        ("stairs", "the elevator", "agent stairs gave up with exit code 64: I take the stairs", 64),
    ],
)
def test_what_the_page_calls_permanent_is_not_tried_again(
    client: Client, agent: str, prompt: str, message: str, exit_code: int
) -> None:
    task = done_by(client, agent, prompt)
    assert (task["status"], task["attempt"], task["exit_code"]) == ("dead", 1, exit_code)
    assert (task["error"]["type"], task["error"]["message"]) == ("InvalidInput", message)


def test_stdin_is_the_object_that_the_page_shows(client: Client) -> None:
    (shown,) = map(json.loads, ORDER.findall(PAGE))
    del shown["previous_output"], shown["task_id"], shown["attempt"]
    task = done_by(client, "mirror", shown["prompt"], params=shown["params"])
    assert task["result"] == {"task_id": task["task_id"], "attempt": 1, **shown}


def test_the_environment_is_what_the_page_lists(client: Client) -> None:
    task = done_by(client, "environment", "Show.")
    names = {line.partition("=")[0] for line in task["result"]["stdout"].splitlines()}
    (listed,) = re.findall(r"^Its environment is (.*?) and the `env`", PAGE, re.MULTILINE)
    assert names - {"PWD"} == set(re.findall(r"`(\w+)`", listed)), "bubblewrap adds PWD"
