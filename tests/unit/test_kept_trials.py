"""What `make mutations` and `make chaos` keep, and how `proof.md` tells it: also what is missing, and what was red."""

from dataclasses import replace
from pathlib import Path

from docs import mutations, storms
from docs.mutations import CONTROL, NO_RESULT, PROMISES, Result
from docs.proven import PROOF
from docs.storms import FAILPOINTS, Storm
from tests.chaos.breaking.catalogue import MUTATIONS
from tests.chaos.breaking.small_changes import small_mutations
from tests.chaos.judge.violation import CRITERIA

NOTICED = Result(True, 41.2, "2026-11-18", "abc123", {"2": 3})
STORM = Storm("tasks", 60, 0, "2026-11-18", "abc123", seed=7, minutes=6.0, tasks=1999, kinds=24)
FIRST = MUTATIONS[0]


def line(lines: list[str], words: str) -> str:
    (found,) = [each for each in lines if each.startswith(f"| {words}")]
    return found


def test_no_two_mutations_share_a_name() -> None:
    """A result would be taken for the other's, and with its name as an argument only one would be tried."""
    assert len(set(mutations.names())) == len(mutations.names())


def test_every_promise_of_the_page_has_its_short_words() -> None:
    rows = PROOF.read_text().partition("| you are promised |")[2].partition("\n\n")[0].splitlines()[2:]
    assert len(PROMISES) == len(CRITERIA) == len(rows)


def test_a_run_of_a_few_leaves_the_others_and_drops_what_the_catalogue_has_no_more() -> None:
    old = {"gone": NOTICED, "b": NOTICED, "a": NOTICED}
    new = {"b": replace(NOTICED, noticed=False)}
    assert mutations.merged(old, new, ["a", "b", "c"]) == {"a": NOTICED, **new}


def test_results_are_read_again_as_they_were_kept(tmp_path: Path) -> None:
    file = tmp_path / "mutations.json"
    mutations.keep(FIRST.name, NOTICED, file)
    mutations.keep(CONTROL, replace(NOTICED, noticed=False, findings={}), file)
    assert list(mutations.load(file)) == [CONTROL, FIRST.name]
    assert mutations.load(file)[FIRST.name] == NOTICED


def test_every_mutation_has_its_row_and_says_when_no_result_is_kept() -> None:
    lines = mutations.drawn({})
    assert sum(NO_RESULT in each for each in lines) == 1 + len(MUTATIONS) + len(small_mutations())


def test_a_row_tells_the_findings_of_its_promise_first_and_those_of_others_after_it() -> None:
    found = replace(NOTICED, findings={"1": 4, str(FIRST.criterion): 3})
    row = line(mutations.drawn({FIRST.name: found}), FIRST.words)
    assert "| 3, and 4 of “finished” | 41 | 2026-11-18 at abc123 |" in row


def test_what_stayed_unnoticed_and_what_was_red_without_a_cause_is_said() -> None:
    small = small_mutations()[0]
    missed = replace(NOTICED, noticed=False, findings={"1": 4})
    lines = mutations.drawn({FIRST.name: missed, small.name: missed, CONTROL: missed})
    assert "| **not noticed**, and 4 of “finished” |" in line(lines, FIRST.words)
    assert "| **not noticed** |" in line(lines, small.words)
    assert "without a cause" in line(lines, "nothing")
    assert "| none |" in line(mutations.drawn({CONTROL: replace(missed, findings={})}), "nothing")


def test_the_newest_storm_of_a_scene_takes_the_place_of_the_older_whatever_came_of_it(tmp_path: Path) -> None:
    file = tmp_path / "storms.json"
    red = replace(STORM, seed=8, broken=2, missing=["workflows"])
    for each in (STORM, replace(STORM, scene="all"), red):
        storms.keep(each, file)
    assert storms.load(file) == {"all": replace(STORM, scene="all"), "tasks": red}


def test_a_storm_names_its_commit_and_what_was_broken() -> None:
    rows = storms.drawn({"tasks": STORM})[2:]
    assert rows == [
        "| `SCENE=tasks SEED=7 MINUTES=6 make chaos` | 1,999 | 60, of 24 kinds | none | 2026-11-18 at abc123 |"
    ]
    (row,) = storms.drawn({"tasks": replace(STORM, sizes="TASKS=5 FAULTS=3")})[2:]
    assert row.startswith("| `SCENE=tasks SEED=7 MINUTES=6 TASKS=5 FAULTS=3 make chaos` |")
    red = replace(STORM, broken=2, uncaught=1, missing=["workflows"], surprises=3)
    (row,) = storms.drawn({"tasks": red})[2:]
    told = "**2 times**; **errors that nobody caught: 1**; **there were no workflows**; **clients were surprised: 3**"
    assert f"| {told} |" in row
    (row,) = storms.drawn({FAILPOINTS: Storm(FAILPOINTS, 138, 0, "2026-11-18", "")})[2:]
    assert "| 138 places | none | 2026-11-18 at no kept commit |" in row
