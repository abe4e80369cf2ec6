"""The files that a page of the documentation shows, for tests that do as it says."""

import re

from tests.support.installation import PROJECT

NAMED_BLOCK = re.compile(r"^(?:## .*: )?\*\*`([^`]+)`\*\*\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def page(name: str) -> str:
    return (PROJECT / "docs" / name).read_text()


def files_of(name: str) -> dict[str, str]:
    """By the names that stand before them."""
    return dict(NAMED_BLOCK.findall(page(name)))
