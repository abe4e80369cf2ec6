"""What is drawn from the code and from the figures is as they have it."""

from pathlib import Path

import pytest

from docs.comparison import measured
from docs.draw import pages

DRAWN = pages()


@pytest.mark.parametrize("file", DRAWN, ids=lambda file: file.name)
def test_a_page_is_what_is_drawn(file: Path) -> None:
    assert file.read_text() == DRAWN[file], "run `make fmt`"


def test_the_comparison_has_a_figure_of_every_measured_system() -> None:
    """A renamed label would leave an empty cell unnoticed."""
    rows = [line.split(" | ") for line in measured() if line.startswith("| ")][1:]
    assert len(rows) == 3
    assert all("not measured" not in cell for row in rows for cell in row[1:6])
    assert all("not measured" in cell for row in rows for cell in row[6:])
