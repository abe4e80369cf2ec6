"""What is said of a task to be, on a command line: a project's defaults, or an item."""

import argparse
from typing import cast

from windlass.client.projects.options import ItemFields
from windlass.services.cli.commands.completing import is_an_actor
from windlass.services.cli.commands.submit import add_task_fields, payload, payload_field


def add_fields(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("fields", nargs="*", type=payload_field, metavar="NAME=VALUE", help="payload; JSON, else text")
    parser.add_argument(
        "--payload", type=payload, metavar="JSON", help="the payload as a whole; @FILE reads a file, - standard input"
    )
    group = parser.add_argument_group("the task")
    is_an_actor(group.add_argument("--actor", help="the kind of work, for example probe"))
    add_task_fields(group)


def fields_of(arguments: argparse.Namespace) -> ItemFields:
    """Only what was said: the rest is left to the defaults."""
    given = {name: getattr(arguments, name, None) for name in ItemFields.__annotations__}
    given["payload"] = {**(arguments.payload or {}), **dict(arguments.fields)} or None
    return cast(ItemFields, {name: value for name, value in given.items() if value is not None})
