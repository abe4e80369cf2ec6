"""Whose functions a statement calls is said in the statement: every one of them is qualified."""

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from windlass.shared import db
from windlass.shared.store import functions
from windlass.shared.store.columns import COLUMNS

PROJECT = Path(__file__).parents[2]
FOLDERS = ("shared", "services", "bench", "tests", "deploy", "docs")
NAMES = "|".join(functions.names())
UNQUALIFIED = re.compile(rf"(?<![\w.`])({NAMES})\s*\(")


def strings_of(path: Path) -> Iterator[str]:
    text = path.read_text()
    for node in ast.walk(ast.parse(text)) if UNQUALIFIED.search(text) else ():
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_a_set_is_named_by_its_text() -> None:
    assert re.fullmatch("windlass_[0-9a-f]{12}", functions.schema())
    assert functions.named("claim_tasks") == f"{functions.schema()}.claim_tasks"


def test_a_set_is_the_same_whatever_rooms_its_files_are_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one_after_the_other = functions.definitions()
    for number, path in enumerate(functions.files()):
        room = tmp_path / str(number % 7)
        room.mkdir(exist_ok=True)
        shutil.copy(path, room)
    monkeypatch.setattr(functions, "FOLDER", tmp_path)
    assert functions.definitions() == one_after_the_other


def test_no_two_files_of_a_set_have_the_same_name() -> None:
    names = [path.name for path in functions.files()]
    assert len(names) == len(set(names))


def test_every_room_of_the_functions_has_a_sign() -> None:
    rooms = {path.parent.relative_to(functions.FOLDER).as_posix() for path in functions.files()}
    signs = re.findall(r"^\| `(\w+)` \|", (functions.FOLDER / "README.md").read_text(), re.MULTILINE)
    assert sorted(signs) == sorted(rooms)


def test_a_function_that_is_not_there_cannot_be_called() -> None:
    with pytest.raises(LookupError, match="no function claim_everything"):
        functions.named("claim_everything")


def test_no_function_is_called_without_its_set_inside_the_set() -> None:
    installed = "\n".join(functions.statements())
    code = re.sub(r"--[^\n]*", "", installed)
    assert UNQUALIFIED.findall(code) == []
    assert len(re.findall(rf"CREATE FUNCTION {functions.schema()}\.\w+\(", code)) == len(functions.names())
    assert f"{functions.schema()}.settle_children(" in code


def test_no_statement_in_python_calls_a_function_without_its_set() -> None:
    found = {
        f"{path.relative_to(PROJECT)}: {call}"
        for folder in FOLDERS
        for path in (PROJECT / folder).rglob("*.py")
        if path.name != "small_changes.py"  # pieces of the set's own text, which it breaks
        for text in strings_of(path)
        for call in UNQUALIFIED.findall(text)
    }
    assert found == set()


def test_whole_rows_are_named_column_by_column() -> None:
    columns = functions.fill_in(":columns_of_bulk_jobs")
    assert columns.startswith("bulk_id uuid, action varchar, ")
    assert columns.count(",") == len(COLUMNS["bulk_jobs"]) - 1
    assert functions.fill_in("SELECT :each_of_bulk_jobs(b)").startswith("SELECT b.bulk_id, b.action, ")


def test_another_column_is_another_set() -> None:
    changed = "columns.COLUMNS['tasks']['new'] = 'text'"
    look = f"from windlass.shared.store import columns, functions; {changed}; print(functions.schema())"
    asked = subprocess.run([sys.executable, "-c", look], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert asked.stdout.strip() not in {"", functions.schema()}


def test_the_set_is_known_only_when_it_is_asked_for() -> None:
    """Nothing is read at import, also not by a statement's module."""
    look = (
        "from windlass.services.api import main; from windlass.shared.store import functions, tasks, orders;"
        "from windlass.shared.store.operating import workers, queues;"
        "print(functions.schema.cache_info().misses, functions.names.cache_info().misses)"
    )
    asked = subprocess.run([sys.executable, "-c", look], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert asked.stdout.split() == ["0", "0"]


def test_a_connection_says_whose_functions_it_calls() -> None:
    assert db.name_of("api") == f"windlass-api {functions.schema()}"
    long = db.name_of("a-service-with-a-name-that-is-far-too-long-for-it")
    assert len(long) == db.LONGEST_NAME
    assert long.endswith(f" {functions.schema()}")
