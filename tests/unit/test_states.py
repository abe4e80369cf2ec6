"""The state machine against the contract."""

import re
from itertools import product
from pathlib import Path

import pytest

from docs import draw
from windlass import shared
from windlass.shared.sql_fragments import due
from windlass.shared.states import LIVE, TERMINAL, TRANSITIONS, State
from windlass.shared.store import functions

SHARED = Path(next(iter(shared.__path__)))

CONTRACT: dict[str, tuple[set[str], set[str]]] = {
    "submit": (set(), {"queued", "blocked"}),
    "unblock": ({"blocked"}, {"queued"}),
    "claim": ({"queued", "retrying"}, {"running"}),
    "complete": ({"running"}, {"completed"}),
    "retry": ({"running"}, {"retrying"}),
    "bury": ({"blocked", "queued", "retrying", "running"}, {"dead"}),
    "stall": ({"running"}, {"retrying", "dead"}),
    "interrupt": ({"running"}, {"queued"}),
    "cancel": ({"blocked", "queued", "retrying", "running"}, {"cancelled"}),
    "revive": ({"dead", "cancelled"}, {"queued", "blocked"}),
}
"""SPEC 2, by hand: from where, to where."""

WORDS = ("blocked", "queued", "running", "retrying", "completed", "dead", "cancelled")


def test_the_seven_words_are_the_seven_states() -> None:
    assert {str(state) for state in State} == set(WORDS)


def test_the_transitions_are_those_of_the_contract() -> None:
    ways = {name: (set(way.sources), set(way.targets)) for name, way in TRANSITIONS.items()}
    assert ways == CONTRACT


def test_a_state_is_either_live_or_terminal() -> None:
    assert set(TERMINAL) == {"completed", "dead", "cancelled"}
    assert set(LIVE) == {"blocked", "queued", "running", "retrying"}


def test_completed_is_for_ever() -> None:
    assert not [name for name, transition in TRANSITIONS.items() if State.COMPLETED in transition.sources]


def test_a_guard_is_filled_in_from_the_state_machine() -> None:
    statement = "UPDATE tasks SET status = :target_of_claim WHERE status IN :sources_of_claim"
    assert functions.fill_in(statement) == (
        "UPDATE tasks SET status = 'running' WHERE status IN ('queued', 'retrying')"
    )


def test_a_guard_with_one_source_is_a_list_of_one() -> None:
    assert functions.fill_in("status IN :sources_of_unblock") == "status IN ('blocked')"


def test_a_transition_with_two_targets_cannot_be_filled_in_by_mistake() -> None:
    with pytest.raises(ValueError, match="unpack"):
        functions.fill_in("SET status = :target_of_revive")


def test_a_guard_of_an_unknown_transition_is_refused() -> None:
    with pytest.raises(KeyError):
        functions.fill_in("status IN :sources_of_resurrect")


def test_every_function_has_all_its_guards_filled_in() -> None:
    written = "\n".join(path.read_text() for path in functions.files())
    installed = "\n".join(functions.definitions())
    assert re.findall(r":(?:sources|target)_of_\w+", written)
    assert re.findall(r":due_at", written)
    assert not re.findall(r":(?:(?:sources|target)_of_\w+|due_at|told|tellers)", installed)


def test_what_is_due_is_filled_in_for_the_moment_that_is_named() -> None:
    assert " ".join(functions.fill_in("WHERE :due_at(now())").split()) == (
        "WHERE t.status IN ('queued', 'retrying') AND t.available_at <= now()"
        " AND (t.expires_at IS NULL OR t.expires_at > now())"
    )
    assert functions.fill_in(":due_at(moment)") == due("moment")


def test_no_line_of_a_function_is_longer_than_one_of_python() -> None:
    """sqlfluff cannot tell: a body is a string to it."""
    assert not [line for each in functions.files() for line in each.read_text().split("\n") if len(line) > 120]


def test_what_is_due_is_written_once() -> None:
    """In the code; a migration keeps the words of its day."""
    files = [each for each in SHARED.rglob("*") if each.suffix in {".py", ".sql"} and "versions" not in each.parts]
    assert [each.name for each in files if "t.expires_at IS NULL OR" in each.read_text()] == ["sql_fragments.py"]


def test_the_diagram_shows_an_arrow_for_every_way_and_no_other() -> None:
    drawn = {
        (name, source, target)
        for source, target, labels in re.findall(r"^ +(\S+) --> (\S+): (.+)$", draw.state_machine(), re.MULTILINE)
        for name in labels.split(", ")
    }
    assert drawn == {
        (name, source, target)
        for name, (sources, targets) in CONTRACT.items()
        for source, target in product(sources or {"[*]"}, targets)
    }
