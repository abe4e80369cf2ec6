"""Every link of every page leads to a file, and the tour's nine stops are there."""

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
PAGES = sorted(
    page for place in (".", "docs", "deploy") for page in (PROJECT / place).glob("*.md" if place == "." else "**/*.md")
)
LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    links = [link for link in LINK.findall(page.read_text()) if not re.match(r"[a-z]+:", link)]
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_tour_has_nine_stops() -> None:
    tour = (PROJECT / "docs" / "life_of_a_task.md").read_text()
    assert re.findall(r"^\| (\d) \| .*\]\(", tour, re.MULTILINE) == list("123456789")
