"""The files that a page of the documentation shows, for tests that do as it says."""

import re

from tests.support.installation import PROJECT

NAMED_BLOCK = re.compile(r"^(?:## .*: )?\*\*`([^`]+)`\*\*\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)

STATE = (". .venv/bin/activate", "KEY=$(cat .windlass/admin_key)", "export WINDLASS_CONFIG=windlass.toml", "make up")
"""The lines by which a page brings its reader to the state that its other commands start from."""


def page(name: str) -> str:
    return (PROJECT / "docs" / name).read_text()


def lines_typed(name: str) -> list[str]:
    """The commands of a page that begin when Windlass runs, line by line."""
    lines = "".join(COMMANDS.findall(page(name))).splitlines()
    assert STATE[0] in lines, f"{name} names no state to start from"
    return [line for line in lines if line not in STATE]


def files_of(name: str) -> dict[str, str]:
    """By the names that stand before them."""
    return dict(NAMED_BLOCK.findall(page(name)))


def unnamed_python_of(name: str) -> list[str]:
    """The Python blocks that are not files."""
    files = set(files_of(name).values())
    return [code for code in PYTHON.findall(page(name)) if code not in files]
