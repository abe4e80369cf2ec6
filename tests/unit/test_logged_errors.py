"""A line in the log that tells of an error says something, also of an exception without words."""

import ast
from pathlib import Path

import pytest

from tests.support.installation import PROJECT

LEVELS = {"debug", "info", "warning", "error", "critical"}
SOURCES = [path for room in ("services", "shared", "windlass") for path in sorted((PROJECT / room).rglob("*.py"))]


def bare_errors(source: str) -> list[int]:
    """The lines in which an exception is logged as it is: an empty one would print nothing."""
    tree = ast.parse(source)
    caught = {each.name for each in ast.walk(tree) if isinstance(each, ast.ExceptHandler) and each.name}
    return [
        call.lineno
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and is_logging(call.func)
        if any(isinstance(each, ast.Name) and each.id in {*caught, "error"} for each in call.args)
    ]


def is_logging(called: ast.expr) -> bool:
    if not isinstance(called, ast.Attribute) or called.attr not in LEVELS:
        return False
    whose = called.value
    return (whose.id if isinstance(whose, ast.Name) else getattr(whose, "attr", "")).endswith("log")


def test_every_error_that_is_logged_goes_through_words_of() -> None:
    found = {str(path.relative_to(PROJECT)): bare_errors(path.read_text()) for path in SOURCES}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize("logged", ["log.warning('it (%s)', error)", "self.log.info('%s', error)"])
def test_a_bare_one_is_found(logged: str) -> None:
    source = f"try:\n    pass\nexcept OSError as error:\n    {logged}\n"
    assert bare_errors(source) == [4]
    assert bare_errors(source.replace(", error)", ", words_of(error))")) == []


def test_the_sources_were_found() -> None:
    assert Path(PROJECT / "services" / "janitor" / "duties" / "bulk.py") in SOURCES
