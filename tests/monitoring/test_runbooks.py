"""The pages for whoever is woken: whole, short, and with commands that there are."""

import re
import shlex
from pathlib import Path

import pytest

from tests.monitoring.written import MONITORING, PROJECT, alerts
from windlass.services.api.reference.operations import OPERATIONS
from windlass.services.cli.main import build_parser

PAGES = sorted(path for path in (MONITORING / "runbooks").glob("*.md") if path.name != "README.md")
PARTS = ("**For users:**", "**See**", "**Likely causes", "**Do**", "**Leave it alone")
AN_ID = "01a1e216-aa70-7000-8000-000000000000"
NAMES = {"N": "3", "NAME": "leonardo"} | dict.fromkeys(
    ("TASK", "PROJECT", "WORKFLOW", "WEBHOOK", "DELIVERY", "EVENT", "JOB", "MODEL"), AN_ID
)
WITHOUT_PREFIX = {"/health", "/health/live", "/health/ready"}

a_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def test_there_is_no_page_without_an_alert() -> None:
    assert {page.stem for page in PAGES} == {alert["alert"] for alert in alerts()}


@a_page
def test_it_has_all_its_parts_in_order_and_is_short(page: Path) -> None:
    text = page.read_text()
    places = [text.index(part) for part in PARTS]
    assert places == sorted(places)
    assert len(text.splitlines()) < 45


@a_page
def test_every_windlass_command_is_understood(page: Path) -> None:
    said = [line for line in code(page) if line.startswith("windlass ")]
    for line in said:
        words = [NAMES.get(word, word) for word in shlex.split(line)[1:]]
        build_parser().parse_args(words)


@a_page
def test_every_address_is_served(page: Path) -> None:
    served = {re.sub(r"{\w+}", "NAME", path) for _, path in OPERATIONS} | WITHOUT_PREFIX
    for line in code(page):
        for path in re.findall(r"\$WINDLASS_URL(/[^\s\"?]*)", line):
            assert path in served


@a_page
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_the_operators_book_lists_every_alert() -> None:
    text = (PROJECT / "docs" / "operating.md").read_text()
    for page in PAGES:
        assert f"[{page.stem}](../deploy/monitoring/runbooks/{page.name})" in text


def code(page: Path) -> list[str]:
    """Lines of blocks and pieces between backticks."""
    text = page.read_text()
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    rest = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return [line for block in blocks for line in block.splitlines()] + re.findall(r"`([^`]+)`", rest)
