"""The mutations still change something: their pieces are where they say, and a process that is given one runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos.breaking.catalogue import MUTATIONS
from tests.chaos.breaking.changes import MUTATED, FunctionChange, Mutation, NotThere, SourceChange, prepare
from tests.chaos.breaking.scenes import SCENES
from tests.chaos.breaking.small_changes import small_mutations
from tests.chaos.judge.violation import CRITERIA, RUN_TWICE, STARTED_STANDING
from windlass.shared.store.functions import named, statements

PROJECT = Path(__file__).parents[2]


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=PROJECT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_each_has_its_scene_and_all_promises_but_two_have_one() -> None:
    """Items that run twice are found beside two open runs; what a workflow that stands has locked is a small one."""
    assert [mutation.name for mutation in MUTATIONS] == list(SCENES)
    broken = {mutation.criterion for mutation in MUTATIONS}
    assert set(range(1, len(CRITERIA) + 1)) - broken == {RUN_TWICE, STARTED_STANDING}


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_the_piece_is_there_once(mutation: Mutation) -> None:
    change: SourceChange | FunctionChange | None = mutation.change
    while change is not None:
        if isinstance(change, FunctionChange):
            (text,) = [each for each in statements() if each.startswith(f"CREATE FUNCTION {named(change.function)}(")]
        else:
            text = change.text()
        assert change.changed(text) != text
        change = change.also


def test_the_pieces_of_the_small_ones_are_there_once_and_their_tests_as_well() -> None:
    for mutation in small_mutations():
        assert mutation.change.changed(mutation.change.text()) != mutation.change.text()
        file, _, name = mutation.test.partition("[")[0].partition("::")
        assert not name or f"def {name}(" in (PROJECT / file).read_text(), mutation.test


def test_mutated_modules_use_no_undefined_name(tmp_path: Path) -> None:
    """A mutation that raises NameError breaks every request, so any promise would seem to notice it."""
    changes = [*(mutation.change for mutation in MUTATIONS), *(small.change for small in small_mutations())]
    for number, change in enumerate(each for each in changes if isinstance(each, SourceChange)):
        (tmp_path / f"mutated_{number}.py").write_text(change.changed(change.text()))
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F821,F823", str(tmp_path)]
    found = subprocess.run(ruff, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout


def test_a_piece_that_is_not_there_is_refused() -> None:
    with pytest.raises(NotThere):
        SourceChange("windlass.services.api.streams.one_task", "what nobody wrote", "").changed("what somebody wrote")
    with pytest.raises(NotThere):
        FunctionChange("end_tasks", "twice", "").changed("twice and twice")


@pytest.mark.parametrize(
    "mutation", [each for each in MUTATIONS if isinstance(each.change, SourceChange)], ids=lambda each: each.name
)
def test_a_process_that_is_given_it_loads_the_changed_source(mutation: Mutation, tmp_path: Path) -> None:
    """Compiled and loaded, though a cached bytecode of the unchanged module lies about."""
    change = mutation.change
    assert isinstance(change, SourceChange)
    look = f"import {change.module} as it; print(type(it.__spec__.loader).__name__)"
    assert run(look).stdout.split() == ["SourceFileLoader"]
    ended = run(look, **prepare(mutation, tmp_path))
    assert ended.stdout.split() == ["ChangedLoader"], ended.stderr


def test_a_process_whose_piece_is_not_there_does_not_start(tmp_path: Path) -> None:
    changes = tmp_path / "changes.json"
    changes.write_text(json.dumps({"windlass.services.api.streams.one_task": [["what nobody wrote", ""]]}))
    ended = run(
        "import windlass.services.api.streams.one_task", CHAOS_SOURCE_CHANGES=str(changes), PYTHONPATH=str(MUTATED)
    )
    assert ended.returncode != 0
    assert "what nobody wrote" in ended.stderr
