"""The mutations still change something: their pieces are where they say, and a process that is given one runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos.changes import MUTATED, MUTATIONS, FunctionChange, Mutation, NotThere, SourceChange, prepare
from tests.chaos.scenes import SCENES
from windlass.shared.store.functions import definitions

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


def test_there_are_five_each_with_its_scene_and_its_criterion() -> None:
    names = [mutation.name for mutation in MUTATIONS]
    assert names == list(SCENES)
    assert len({mutation.criterion for mutation in MUTATIONS}) == len(names) == 5


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_the_piece_is_there_once(mutation: Mutation) -> None:
    change = mutation.change
    if isinstance(change, FunctionChange):
        (text,) = [each for each in definitions() if f"CREATE FUNCTION {change.function}(" in each]
    else:
        text = change.text()
    assert change.changed(text) != text


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
