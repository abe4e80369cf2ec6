"""Every command that the README or a page shows is run: for real by the test that follows the page, and here by whoever
would read it, the command line's own parser, the API's description, the Makefile."""

import argparse
import contextlib
import io
import json
import os
import re
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jsonschema_rs
import pytest

from tests.support.installation import PROJECT
from tests.support.pages import files_of, page
from tests.support.shown_commands import ANSWER, Command, blocks_of, commands_of
from windlass.services.api.main import create_app
from windlass.services.api.reference.openapi import complete
from windlass.services.cli.main import build_parser
from windlass.shared.settings import Settings
from windlass.shared.submission.known import built_in_actors

PAGES = ("../README.md", *sorted(each.name for each in (PROJECT / "docs").glob("*.md")))
SHOWN = tuple(name for name in PAGES if blocks_of(name))

FOLLOWED = {
    "../README.md": "test_adding_an_actor.py::test_the_readme_does_what_it_says",
    "adding_an_actor.md": "test_adding_an_actor.py::test_it_is_run_from_python",
    "adding_a_provider.md": "test_adding_a_provider.py::test_its_promises_are_tried_out",
    "adding_an_agent.md": "test_adding_an_agent.py::test_it_is_submitted_and_watched",
    "command_line.md": "test_cli_operating.py::test_the_page_s_commands_do_what_they_say",
    "memory.md": "test_memory_clients.py::test_the_page_does_what_it_says",
    "operating.md": "test_cli_operating.py::test_limits_are_changed_as_the_operators_book_says",
    "projects.md": "test_projects.py::test_the_page_does_what_it_says",
    "schedules.md": "test_schedules.py::test_the_page_does_what_it_says",
    "trying_it.md": "test_killed_processes.py::test_who_tries_it_as_the_page_says_sees_what_it_says",
    "webhooks.md": "test_webhooks.py::test_the_page_does_what_it_says",
    "workflows.md": "test_workflow_clients.py::test_the_page_does_what_it_says",
}
"""Run with real processes, by which acceptance test; what that one leaves out, as all others, is read here alone."""

NOT_RUN = {
    "docker": "wants an engine, which no test may ask for",
    "kubectl": "wants a cluster; what it applies is held against schemas, rules and the code by tests/deploy",
}
"""With the reason. Files that they are given have to be there."""

OF_THE_SHELL = {"awk", "base64", "cat", "cp", "cut", "grep", "kill", "less", "rm", "sed", "sleep"}
"""What everybody has, and does what it always does."""

OURS = "deploy/k8s/overlays/ours"
"""The reader's own copy of the production overlay."""


@pytest.fixture(scope="module")
def description() -> dict[str, Any]:
    settings = Settings()
    drawn = complete(create_app(settings).openapi_schema.to_schema(), built_in_actors(), settings)
    document: dict[str, Any] = json.loads(json.dumps(drawn, default=str))
    return document


@pytest.mark.parametrize("name", SHOWN)
def test_every_command_is_one_that_somebody_understands(name: str, tmp_path: Path, description: dict[str, Any]) -> None:
    commands = commands_of(name, tmp_path)
    assert {each.block for each in commands} == set(range(1, len(blocks_of(name)) + 1)), "a block without a command"
    wrong = [
        (f"block {each.block}", " ".join(each.words), said) for each in commands if (said := fault(each, description))
    ]
    assert wrong == []


@pytest.mark.parametrize("name", [each for each in SHOWN if each != "operating.md"])
def test_a_page_has_everything_that_its_commands_need(name: str, tmp_path: Path) -> None:
    """The environment is activated and pytest installed before the first command that needs them, and nobody has to
    fill in a key. The operators' book is for installations that have none."""
    keys = re.findall(r"^KEY=(.*)$", "\n".join(blocks_of(name)), re.MULTILINE)
    assert set(keys) <= {"$(cat .windlass/admin_key)"}
    activated = installed = False
    for command in commands_of(name, tmp_path):
        activated |= command.program == ".venv/bin/activate"
        installed |= command.program == "pip" and "pytest" in command.words
        assert activated or command.program not in {"windlass", "pytest", "python", "pip"}, command
        assert installed or command.program != "pytest", command


@pytest.mark.parametrize(("name", "test"), FOLLOWED.items())
def test_who_is_said_to_follow_a_page_does(name: str, test: str) -> None:
    module, _, function = test.partition("::")
    source = (PROJECT / "tests" / "acceptance" / module).read_text()
    assert f"def {function}(" in source
    assert f'"{name}"' in source
    assert name in SHOWN


@cache
def the_parser() -> argparse.ArgumentParser:
    """Made once: it is as large as the command line."""
    return build_parser()


def fault(command: Command, description: dict[str, Any]) -> str | None:
    """What is wrong with it, if anything is."""
    if command.program in OF_THE_SHELL:
        return None
    if command.program in NOT_RUN:
        return missing_files(command)
    if "/" in command.program:
        return a_script(command)
    if command.program == "curl":
        return a_request(command, description)
    reader = READERS.get(command.program)
    return reader(command) if reader else "nobody runs this: give it a reader here, or a reason in NOT_RUN"


def a_windlass(command: Command) -> str | None:
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        try:
            the_parser().parse_args([ANSWER if each == "ID" else each for each in command.words[1:]])
        except SystemExit as refused:
            return said.getvalue() if refused.code else None
    own = files_of(command.page)
    given = [each for each in command.words[1:] if each.endswith((".py", ".yaml"))]
    return ", ".join(f"{each} is no file of the page" for each in given if each not in own) or None


def a_target(command: Command) -> str | None:
    makefile = (PROJECT / "Makefile").read_text()
    targets = [each for each in command.words[1:] if "=" not in each]
    return (
        ", ".join(f"no target {each}" for each in targets if not re.search(rf"^{each}:", makefile, re.MULTILINE))
        or None
    )


def an_installation(command: Command) -> str | None:
    """From a clone, here or beside: no package index has it. pytest is on every one."""
    install, what = (each for each in command.words[1:] if each != "-e")
    if (install, what) == ("install", "pytest"):
        return None
    extras = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    found = re.fullmatch(r"(?:\.|\.\./windlass)\[(\w+)\]", what)
    return None if install == "install" and found and found[1] in extras else f"no {what} can be installed"


def an_environment(command: Command) -> str | None:
    return None if command.words[1:] == ("-m", "venv", ".venv") else "not the environment that is activated"


def a_file_of_the_page(command: Command) -> str | None:
    return None if set(command.words[1:]) <= files_of(command.page).keys() else "no file of the page"


READERS: dict[str, Callable[[Command], str | None]] = {
    "windlass": a_windlass,
    "make": a_target,
    "pip": an_installation,
    "python": a_file_of_the_page,
    "python3": an_environment,
    "pytest": a_file_of_the_page,
}


def a_script(command: Command) -> str | None:
    script = PROJECT / command.program
    if command.program == ".venv/bin/activate":
        return None
    return missing_files(command) if os.access(script, os.X_OK) else "no such script"


def missing_files(command: Command) -> str | None:
    named = [each for each in command.words if each.startswith("deploy/") and not each.startswith(OURS)]
    return ", ".join(f"{each} is not there" for each in named if not (PROJECT / each).exists()) or None


def a_request(command: Command, description: dict[str, Any]) -> str | None:
    parser = argparse.ArgumentParser(exit_on_error=False)
    parser.add_argument("-X", dest="method")
    parser.add_argument("-H", dest="headers", action="append")
    parser.add_argument("--json", dest="body")
    parser.add_argument("-N", "-s", "-f", action="store_true")
    parser.add_argument("url")
    asked = parser.parse_args(command.words[1:])
    url = urlsplit(asked.url)
    method = (asked.method or ("POST" if asked.body else "GET")).lower()
    own = f"def {url.path.rpartition('/')[2]}("
    if method == "post" and any(own in content for content in files_of(command.page).values()):
        return None  # an actor of the page's own: whoever follows the page submits it
    operation = operation_at(description, url.path, method)
    if operation is None:
        return f"the API has no {method.upper()} {url.path}"
    known = {each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"}
    if unknown := parse_qs(url.query).keys() - known:
        return f"{url.path} knows no {', '.join(unknown)}"
    return a_body(json.loads(asked.body), operation, description) if asked.body else None


def operation_at(description: dict[str, Any], path: str, method: str) -> dict[str, Any] | None:
    """A path without placeholders goes before one that has some."""
    patterns = sorted(description["paths"], key=lambda each: each.count("{"))
    for pattern in patterns:
        if re.fullmatch(re.sub(r"\\\{[^}]*\\\}", "[^/]+", re.escape(pattern)), path):
            found: dict[str, Any] | None = description["paths"][pattern].get(method)
            if found:
                return found
    return None


def a_body(body: Any, operation: dict[str, Any], description: dict[str, Any]) -> str | None:
    if operation["operationId"] == "put_schedule":
        body = {"name": "said by the path", **body}
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    validator = jsonschema_rs.validator_for({**schema, "components": description["components"]})
    return "; ".join(error.message for error in validator.iter_errors(body)) or None


# Commands in a sentence: `windlass …`, sometimes with more than one choice in it.

SAID = ("ready ", "page ")
"""What it says itself. And locks have names that begin with `windlass`."""

IN_A_SENTENCE = sorted(
    {
        (name, command)
        for name in PAGES
        for command in re.findall(
            r"`windlass ([^`\n]+)`", re.sub(r"^ *```.*?^ *```$", "", page(name), flags=re.MULTILINE | re.DOTALL)
        )
        if name != "lock_order.md" and not command.startswith(SAID)
    }
)


@pytest.mark.parametrize(("name", "command"), IN_A_SENTENCE)
def test_a_command_in_a_sentence_exists(name: str, command: str) -> None:
    parser = the_parser()
    first, *words = command.split()
    assert first in {*below(parser), "--help"}
    parser = below(parser).get(first, parser)
    for word in words:
        if word.startswith("-"):
            assert word.partition("=")[0] in parser._option_string_actions
        parser = below(parser).get(word, parser)


def below(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    actions = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(actions[0].choices) if actions else {}


def test_the_commands_were_found() -> None:
    found = {command for _, command in IN_A_SENTENCE}
    assert {"after-restore --dry-run", "migrate", "open", "providers set leonardo --pause"} <= found
