"""`windlass providers check`: what an adapter promises, tried out, a line for each promise."""

import argparse
import asyncio
from collections.abc import Generator
from contextlib import ExitStack, closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from windlass.services.cli import exit_codes
from windlass.services.cli.bundled_server import PLAYED, bundled_server
from windlass.services.cli.commands.arguments import Commands
from windlass.services.cli.display.screen import Screen
from windlass.services.cli.display.tables import Table
from windlass.services.cli.display.texts import clean

if TYPE_CHECKING:
    from windlass.shared.providers.conformance.promise import Outcome
    from windlass.shared.settings import Settings
    from windlass.shared.toml_tables import Endpoint

STYLES: Final = {"kept": "green", "skipped": "yellow", "broken": "red"}
KEY_OF_A_DOUBLE: Final = "a-key"


def add_command(actions: Commands) -> None:
    duty = "try out what a provider's adapter promises; exit code 1 if a promise is broken"
    parser = actions.add_alone("check", check, duty, "windlass providers check leonardo")
    parser.add_argument("name", metavar="NAME")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--real", action="store_true", help="speak to the configured provider; an order costs money")
    where.add_argument("--double", metavar="URL", help="speak to a test double of yours at this address")


def check(arguments: argparse.Namespace) -> int:
    given: dict[str, Any] = vars(arguments)
    screen = Screen(as_json=given.get("output") == "json")
    found: list[Outcome] = []
    from windlass.shared.errors import TaskError  # noqa: PLC0415 - settings and adapters take their time
    from windlass.shared.settings.loading import WrongSettings, load_settings  # noqa: PLC0415

    try:
        with ExitStack() as stack:
            settings = load_settings()
            settings, endpoint = where_to(settings, given, stack)
            for outcome in stack.enter_context(closing(try_out(settings, given["name"], endpoint))):
                found.append(outcome)
                if screen.is_terminal and not screen.as_json:
                    draw(screen, outcome)
    except (TaskError, WrongSettings, OSError) as error:
        screen.remark(f"windlass: {error}")
        return exit_codes.FAILED
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED
    if screen.as_json or not screen.is_terminal:
        screen.show({"items": [asdict(each) for each in found]}, outcomes_table(found))
    counted = {state: sum(each.state == state for each in found) for state in STYLES}
    screen.remark(", ".join(f"{number} {state}" for state, number in counted.items()))
    return exit_codes.FAILED if counted["broken"] else exit_codes.DONE


def where_to(settings: "Settings", given: dict[str, Any], stack: ExitStack) -> "tuple[Settings, Endpoint | None]":
    """The configured provider, a double, or the bundled server for what it can play; else nobody."""
    from windlass.shared.errors import Unauthorized  # noqa: PLC0415
    from windlass.shared.toml_tables import Endpoint  # noqa: PLC0415

    name = given["name"]
    if name not in settings.providers:
        return settings, None
    if given["real"]:
        real = settings.endpoint_of(name)
        if real is None or real.is_fake:
            raise Unauthorized(f"{name} cannot be spoken to: {settings.lack_of(name)}")
        return settings, real
    if given["double"]:
        url, own = given["double"].rstrip("/"), settings.endpoint_of(name)
        key = own.api_key if own is not None and not own.is_fake else KEY_OF_A_DOUBLE
        return settings.model_copy(update={"fake_providers_url": url}), Endpoint(url, key, is_fake=True)
    adapter = settings.providers[name].adapter or name
    if adapter not in PLAYED:
        return settings, None
    url = stack.enter_context(bundled_server())
    played = Endpoint(f"{url}/{adapter}", KEY_OF_A_DOUBLE, is_fake=True)
    return settings.model_copy(update={"fake_providers_url": url}), played


def try_out(settings: "Settings", name: str, endpoint: "Endpoint | None") -> "Generator[Outcome, None, None]":
    """One after the other, on a loop of their own: each is shown when it is known."""
    from windlass.shared.providers.conformance.suite import promises  # noqa: PLC0415

    with asyncio.Runner() as runner:
        for promise in promises(settings, name, endpoint):
            yield runner.run(promise.try_out())


def draw(screen: Screen, outcome: "Outcome") -> None:
    line = Text.assemble((f"{outcome.state:<8}", STYLES[outcome.state]), clean(outcome.promise))
    screen.console.print(line, soft_wrap=True)
    if outcome.detail:
        screen.console.print(Text(f"        → {clean(outcome.detail)}"), soft_wrap=True)


def outcomes_table(found: "list[Outcome]") -> Table:
    rows = [(each.state, clean(each.promise), clean(each.detail)) for each in found]
    return Table(("STATE", "PROMISE", "DETAIL"), rows, "nothing was promised")
