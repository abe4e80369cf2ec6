"""Two editions and bare Dramatiq in turns: which ratio counts, what the table shows, and what an edition is told."""

import ast
import importlib

import pytest

from bench.editions import DRAIN, Drain, Turn, medians, table


def a_turn(before: float, after: float, bare: float, *, worker: float = 0.2, postgres: float = 0.2) -> Turn:
    return Turn(
        Drain(before, {"worker": 2 * worker, "Postgres": postgres}, 64),
        Drain(after, {"worker": worker, "Postgres": postgres}, 256),
        Drain(bare, {}, 8),
    )


TURNS = [
    a_turn(1000, 2000, 4000),
    a_turn(100, 300, 400, worker=0.1, postgres=0.9),
    a_turn(3000, 4500, 5000, worker=0.3, postgres=0.1),
]


def test_a_ratio_is_that_of_its_own_turn_and_the_median_is_of_these() -> None:
    found = medians(TURNS)
    assert found["after"]["tasks_per_second"] == 2000
    assert found["after"]["of_bare"] == pytest.approx(0.75)
    assert found["after"]["of_before"] == pytest.approx(2.0)
    assert found["before"]["of_bare"] == pytest.approx(0.25)
    assert found["bare"] == {
        "threads": 8,
        "tasks_per_second": 4000,
        "of_bare": 1.0,
        "of_before": pytest.approx(4.0),
    }


def test_what_a_task_takes_in_all_is_the_median_of_the_sums() -> None:
    after = medians(TURNS)["after"]
    assert after["worker_ms"] == pytest.approx(0.2)
    assert after["Postgres_ms"] == pytest.approx(0.2)
    assert after["cpu_ms"] == pytest.approx(0.4)
    assert medians(TURNS)["before"]["cpu_ms"] == pytest.approx(0.7)  # 0.6, 1.1 and 0.7: the medians are 0.4 and 0.2


def test_the_table_has_every_turn_and_the_medians_below_them() -> None:
    head, rule, *rows = table({2: TURNS, 1: TURNS[:1]}).splitlines()
    assert head == (
        "| processes | round | edition | threads | tasks/s | x bare | x before | CPU ms a task | worker | Postgres |"
    )
    assert rule.count("---") == head.count("|") - 1
    assert [row.split(" | ")[:3] for row in rows[::3]] == [
        ["| 2", "1", "before"],
        ["| 2", "2", "before"],
        ["| 2", "3", "before"],
        ["| 2", "median of 3", "before"],
        ["| 1", "1", "before"],
        ["| 1", "median of 1", "before"],
    ]
    assert rows[1] == "| 2 | 1 | after | 256 | 2,000 | 0.50 | 2.00 | 0.400 | 0.200 | 0.200 |"
    assert rows[2] == "| 2 | 1 | bare | 8 | 4,000 | 1.00 | 4.00 |  |  |  |"
    assert rows[10] == "| 2 | median of 3 | after | 256 | 2,000 | 0.75 | 2.00 | 0.400 | 0.200 | 0.200 |"


def test_a_stage_that_one_edition_has_not_is_left_empty() -> None:
    turn = Turn(Drain(10, {"sweeper": 1.0}, 64), Drain(20, {"worker": 0.5}, 256), Drain(40, {}, 8))
    head, _, before, after, *_ = table({1: [turn]}).splitlines()
    assert head.endswith("| sweeper | worker |")
    assert before.endswith("| 1.000 | 1.000 |  |")
    assert after.endswith("| 0.500 |  | 0.500 |")


def test_this_edition_has_what_it_is_told_to_import() -> None:
    """No type checker reads it there."""
    imports = [node for node in ast.walk(ast.parse(DRAIN)) if isinstance(node, ast.ImportFrom)]
    assert any(node.module == "bench.drains" for node in imports)
    for node in imports:
        module = importlib.import_module(str(node.module))
        assert [each.name for each in node.names if not hasattr(module, each.name)] == []
