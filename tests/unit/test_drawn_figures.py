"""Tables that are drawn from what was measured: the numbers are those of the figures, and a missed aim is named."""

from typing import Any

import pytest

from docs import proven
from docs.figures import Figures, between_marks, kept_figures, numbers_of
from docs.proven_rows import ROWS, Row
from docs.sizing import sizing


def figure(name: str, *, reached: bool | None = None, label: str = "", **numbers: float) -> dict[str, Any]:
    return {"name": name, "value": "told", "aim": "<= 2 x", "numbers": numbers, "reached": reached, "label": label}


def report(*figures: dict[str, Any], **fields: Any) -> Figures:
    part = {"date": "2026-11-18", "commit": "abc123", "load": 0.1, "cores": 2, "figures": list(figures)}
    return Figures({"api": {**part, **fields}})


def test_what_differs_from_run_to_run_is_no_part_of_the_name() -> None:
    figures = report(figure("with 17 to 19 due", ms=3.0), figure("other", ms=4.0))
    assert figures.of("api", "with * due").ms == 3.0


@pytest.mark.parametrize("where", [("api", "renamed"), ("nowhere", "other")])
def test_a_figure_that_is_not_there_is_an_error_and_no_empty_cell(where: tuple[str, str]) -> None:
    with pytest.raises(LookupError, match="renamed"):
        report(figure("other")).found(*where)


def test_one_has_its_numbers_and_several_have_their_least_and_most() -> None:
    one = numbers_of([figure("a", worker=1.0, postgres=2.0)])
    assert (one.worker, one.total, one.count) == (1.0, 3.0, 1)
    few = numbers_of([figure("a", ms=1, reached=True), figure("b", ms=9, only=1), figure("c", ms=4, reached=False)])
    assert (few.least.ms, few.most.ms, few.count) == (1, 9, 3)
    assert (few.aimed.most.ms, few.aimed.count) == (4, 2)
    assert not hasattr(few.most, "only")
    assert not hasattr(few, "ms")


def test_a_row_tells_the_numbers_the_aim_and_which_of_several_is_missed() -> None:
    row = Row("pages", "{pages.least.ratio:.1f} to {pages.most.ratio:.1f} x", {"pages": ("api", "page *")}, "so it is")
    good, bad = figure("page a", ratio=1.0, reached=True), figure("page b", ratio=2.5, reached=False)
    assert proven.cells(row, report(good)) == ("pages", "1.0 to 1.0 x", "<= 2 x", "reached", "`api`")
    assert proven.cells(row, report(good, bad))[1:4] == ("1.0 to 2.5 x", "<= 2 x", "**not reached**: page b: so it is")
    assert proven.cells(row, report(bad))[3] == "**not reached**: so it is"
    assert proven.cells(row, report(figure("page c", ratio=1.0)))[2:4] == ("", "")


def test_every_row_finds_its_figures_among_those_that_are_kept() -> None:
    figures = kept_figures()
    assert all(any(character.isdigit() for character in proven.cells(row, figures)[1]) for row in ROWS)
    assert len({row.words for row in ROWS}) == len(ROWS)


def test_the_page_says_when_and_at_which_commit_each_part_was_measured_and_what_was_busy() -> None:
    kept = kept_figures()
    lines = proven.costs(Figures({name: {**part, "load": 9.0} for name, part in kept.parts.items()}))
    for name, part in kept.parts.items():
        (line,) = [each for each in lines if each.startswith("- ") and f"`{name}`" in each]
        assert line.startswith(f"- {part['date']} at {part['commit']}:")
        assert f"`{name}` (**busy**, load 9.0)" in line


def test_the_contest_tells_what_a_setting_did_when_it_was_tried_and_when_it_counted() -> None:
    tried = figure("settings tried with 1500 no-ops, Peer")
    tried["numbers"] = {"two (2), tasks_per_second": 941.0, "one, tasks_per_second": 2.0}
    counted = figure("4500 no-ops drained, Peer (two (2))", label="Peer", tasks_per_second=417.6)
    figures = Figures({"contest": {"figures": [counted, tried]}})
    assert proven.contest(figures)[2:] == [
        "| Peer | two (2), the best of 2 | 941/s with 1,500 tasks | 418/s with 4,500 |"
    ]


def test_sizes_follow_the_figures() -> None:
    kept = kept_figures()
    figures = [
        {**each, "numbers": {**each["numbers"], "idle_mb": 777.0}} if each["name"] == "memory, api" else each
        for each in kept.parts["footprint"]["figures"]
    ]
    lines = sizing(Figures({**kept.parts, "footprint": {**kept.parts["footprint"], "figures": figures}}))
    assert any("| api 777 MB, worker" in line for line in lines)


def test_what_stands_between_marks_is_replaced_and_marks_that_are_gone_are_missed() -> None:
    page = "a\n<!-- x: drawn by `make fmt` -->\nold\n<!-- x: end -->\nb\n"
    drawn = between_marks(page, "x", ["new | \\1"])
    assert drawn == page.replace("old", "new | \\1")
    assert between_marks(drawn, "x", ["old"]) == page
    with pytest.raises(LookupError, match="0 times"):
        between_marks("a\n", "x", [])
