"""Every link of every page leads to a file and a heading, the tour's nine stops are there, and the documentation is one
walk, on which every page is met."""

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
PAGES = sorted(
    page for place in (".", "docs", "deploy") for page in (PROJECT / place).glob("*.md" if place == "." else "**/*.md")
)
LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]*))?\)")
NEXT = re.compile(r"^Next: \[[^\]]+\]\(([^)]+)\)\.\n\Z", re.MULTILINE)
FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
LAST = PROJECT / "docs" / "decisions" / "README.md"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    links = [each for each in LINK.findall(FENCED.sub("", page.read_text())) if not re.match(r"[a-z]+:", each[0])]
    targets = [(page.parent / link if link else page, anchor) for link, anchor in links]
    assert [str(target) for target, _ in targets if not target.exists()] == []
    named = [(target, anchor) for target, anchor in targets if anchor and target.suffix == ".md"]
    assert [f"{target}#{anchor}" for target, anchor in named if anchor not in anchors_of(target)] == []


def anchors_of(page: Path) -> set[str]:
    """As GitHub makes them of headings: small letters, hyphens for spaces, no punctuation."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text()), re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", each) for each in headings]
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in plain}


def test_the_tour_has_nine_stops() -> None:
    tour = (PROJECT / "docs" / "life_of_a_task.md").read_text()
    assert re.findall(r"^\| (\d) \| .*\]\(", tour, re.MULTILINE) == list("123456789")


def test_the_documentation_is_one_walk() -> None:
    """From the README on, by what each page names as the next."""
    met = [PROJECT / "README.md"]
    while found := NEXT.search(met[-1].read_text()):
        met.append((met[-1].parent / found[1]).resolve())
        assert met.count(met[-1]) == 1, f"the walk comes to {met[-1].name} twice"
    assert met[-1] == LAST
    assert set((PROJECT / "docs").glob("*.md")) - set(met) == set(), "nobody names these as the next"


def test_the_door_has_every_page_in_the_order_of_the_walk() -> None:
    door = PROJECT / "docs" / "README.md"
    shown = [link for link, _ in LINK.findall(door.read_text()) if not link.startswith("..")]
    assert list(dict.fromkeys(shown[:-1])) == walk_from(door)


def walk_from(page: Path) -> list[str]:
    names: list[str] = []
    while found := NEXT.search(page.read_text()):
        page = (page.parent / found[1]).resolve()
        names.append(str(page.relative_to(PROJECT / "docs")))
    return names


def test_every_cell_of_the_comparison_names_its_source() -> None:
    """What was measured comes from the figures; all else has a link."""
    text = (PROJECT / "docs" / "comparison.md").read_text()
    *_, table = [part for part in text.split("\n\n") if part.startswith("| |")]
    head, _, *rows = table.splitlines()
    assert [name.strip() for name in head.split("|")[2:-1]] == [
        "Windlass", "Celery", "Dramatiq", "DBOS", "Procrastinate", "Hatchet", "Temporal",
    ]  # fmt: skip
    cells = [cell for row in rows for cell in re.split(r"(?<!\\)\|", row)[2:-1]]
    assert len(cells) == 7 * len(rows)
    assert [cell for cell in cells if "](" not in cell] == []
