"""Tables on a narrow terminal: columns are left out before a line wraps, and ids stay whole."""

import pytest

from windlass.services.cli.display.tables import Table

TASK = "01a1f067-d338-7e6b-b16f-b2b68092783a"
TABLE = Table(
    columns=("TASK", "STATUS", "QUEUE", "ATTEMPT", "AGE", "COST", "PROGRESS"),
    rows=[(TASK, "completed", "summarize.openrouter", "1", "12d03h", "", "Completed after a very long story " * 3)],
    empty="no tasks",
    wide=frozenset({"PROGRESS"}),
    least=("COST", "ATTEMPT", "AGE", "QUEUE"),
)


@pytest.mark.parametrize(
    ("width", "columns"),
    [
        (80, ["TASK", "STATUS", "PROGRESS"]),
        (96, ["TASK", "STATUS", "QUEUE", "AGE", "PROGRESS"]),
        (120, ["TASK", "STATUS", "QUEUE", "ATTEMPT", "AGE", "COST", "PROGRESS"]),
    ],
)
def test_every_line_fits_and_the_least_important_columns_go_first(width: int, columns: list[str]) -> None:
    heading, row = (line.plain for line in TABLE.drawn(width))
    assert heading.split() == columns
    assert len(row) <= width
    assert row.startswith(f"{TASK}  completed  ")


def test_a_pipe_gets_every_column() -> None:
    assert TABLE.plain().splitlines()[0].split("\t") == list(TABLE.columns)
