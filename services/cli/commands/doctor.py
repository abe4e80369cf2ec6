"""`windlass doctor`: what is wrong, here and at the Windlass that is found, and what to do about it."""

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

from rich.text import Text

from windlass import Client, WindlassError
from windlass.services.cli import exit_codes
from windlass.services.cli.commands.arguments import Commands
from windlass.services.cli.connection import choose_connection
from windlass.services.cli.display.screen import Screen
from windlass.services.cli.display.tables import Table
from windlass.services.cli.display.texts import clean
from windlass.services.cli.doctor.finding import Finding, bad

TIMEOUT_SECONDS: Final = 10.0
STYLES: Final = {"ok": "green", "note": "yellow", "bad": "red"}


def add_commands(commands: Commands) -> None:
    duty = "look for what is wrong, here and at the API, and say what to do about it; exit code 1 if anything is"
    commands.add_alone("doctor", doctor, duty, "windlass doctor")


def doctor(arguments: argparse.Namespace) -> int:
    """Not a session's command: that there is nobody to speak to is a finding, too."""
    given: dict[str, Any] = vars(arguments)
    screen = Screen(as_json=given.get("output") == "json")
    found: list[Finding] = []
    try:
        for finding in examine(given.get("url"), given.get("key"), given.get("patience", 0)):
            found.append(finding)
            if screen.is_terminal and not screen.as_json:
                draw(screen, finding)
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED
    if screen.as_json or not screen.is_terminal:
        screen.show({"items": [asdict(each) for each in found]}, findings_table(found))
    wrong = sum(each.state == "bad" for each in found)
    screen.remark(f"{wrong} to mend" if wrong else "nothing to mend")
    return exit_codes.FAILED if wrong else exit_codes.DONE


def examine(url: str | None, key: str | None, patience: float) -> Iterator[Finding]:
    # Imported late: settings take their time, and nobody else here needs them.
    from windlass.services.cli.doctor.here import look_here  # noqa: PLC0415
    from windlass.services.cli.doctor.there import look_there  # noqa: PLC0415
    from windlass.shared.settings.loading import WrongSettings, load_settings  # noqa: PLC0415

    try:
        yield from look_here(load_settings())
    except WrongSettings as error:
        for mistake in error.mistakes:
            yield bad("settings", mistake, "docs/settings.md has them all")
    try:
        connection = choose_connection(url, key)
        with Client(connection.url, connection.key, timeout=TIMEOUT_SECONDS, patience=patience) as client:
            yield from look_there(connection.url, client)
    except WindlassError as error:
        yield bad("api", str(error), "start one with `make up`, or name one with --url and --key")


def draw(screen: Screen, finding: Finding) -> None:
    line = Text.assemble((f"{finding.state:<5}", STYLES[finding.state]), f"{finding.name}: {clean(finding.detail)}")
    screen.console.print(line, soft_wrap=True)
    if finding.remedy:
        screen.console.print(Text(f"     → {clean(finding.remedy)}"), soft_wrap=True)


def findings_table(found: list[Finding]) -> Table:
    rows = [(each.name, each.state, clean(each.detail), clean(each.remedy)) for each in found]
    return Table(("WHAT", "STATE", "DETAIL", "REMEDY"), rows, "nothing was looked at")
