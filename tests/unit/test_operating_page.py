"""docs/operating.md names only commands and options that exist."""

import argparse
import re
from pathlib import Path

import pytest

from windlass.services.cli.main import build_parser

PAGE = (Path(__file__).parents[2] / "docs" / "operating.md").read_text()
COMMANDS = sorted(
    {
        command.split("#")[0].strip()
        for found in re.findall(r"`windlass ([^`]+)`|^\s*windlass ([^\n]+)", PAGE, re.MULTILINE)
        for command in found
        if command
    }
)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_on_the_page_exists(command: str) -> None:
    parser: argparse.ArgumentParser = build_parser()
    first, *words = command.split()
    parser = below(parser)[first]
    for word in words:
        if word.startswith("-"):
            assert word in parser._option_string_actions
        parser = below(parser).get(word, parser)


def below(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    actions = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(actions[0].choices) if actions else {}


def test_the_commands_were_found() -> None:
    assert {"after-restore", "migrate", "providers set leonardo --limit default"} <= set(COMMANDS)
