"""Arguments that several commands share, and how each is read."""

import argparse
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, cast, get_args

from windlass import Filter, Status
from windlass.client.options import Lane
from windlass.services.cli.parsing import Parser
from windlass.services.cli.references import PROJECT_LABEL, TASK, WORKFLOW_LABEL
from windlass.services.cli.session import PATIENCE_SECONDS, Command, run

OPTIONAL: Any = argparse.SUPPRESS


class Commands:
    """Adds commands; each one knows where the API is, and how to show its answer."""

    def __init__(self, subparsers: "argparse._SubParsersAction[Parser]") -> None:
        self._subparsers = subparsers

    def add(self, name: str, command: Command, duty: str, example: str, *, intermixed: bool = False) -> Parser:
        """`example` is a whole line that somebody could type."""
        return self.add_alone(name, partial(run, command), duty, example, intermixed=intermixed)

    def add_alone(
        self, name: str, run: Callable[[argparse.Namespace], int], duty: str, example: str, *, intermixed: bool = False
    ) -> Parser:
        """For a command that can do without an API to speak to."""
        description = f"{duty[0].upper()}{duty[1:]}."
        parser = self._subparsers.add_parser(
            name, help=duty, description=description, example=example, intermixed=intermixed
        )
        parser.set_defaults(run=run)
        add_connection(parser)
        return parser

    @classmethod
    def below(cls, parser: Parser) -> "Commands":
        """Commands of a command, such as `keys create`; without one the command shows what there is."""
        return cls(parser.add_subparsers(metavar="ACTION", title="actions"))


def add_connection(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("connection and output")
    group.add_argument("--url", default=OPTIONAL, help="the API; else WINDLASS_URL, else what `make up` runs here")
    group.add_argument("--key", default=OPTIONAL, help="your key; else WINDLASS_API_KEY, which `ps` does not show")
    group.add_argument(
        "--patience",
        type=seconds,
        default=OPTIONAL,
        metavar="SECONDS",
        help=f"how long to go on trying while the API is away ({PATIENCE_SECONDS:g})",
    )
    group.add_argument("-o", "--output", choices=("table", "json"), default=OPTIONAL, help="json is for programs")


def add_reason(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--reason", metavar="TEXT", help="why, for the audit log")


def add_filters(parser: argparse.ArgumentParser, *, by_status: bool = True) -> None:
    """One for each of the client's filters, under its name there, so that `chosen_filter` finds them."""
    group = parser.add_argument_group("which tasks")
    for name in Filter.__annotations__:
        if by_status or name != "status":
            group.add_argument(flag_of(name), dest=name, **READ_AS.get(name, {}))


def flag_of(name: str) -> str:
    return SPOKEN.get(name) or "--" + name.removesuffix("_id").replace("_", "-")


def chosen_filter(arguments: argparse.Namespace) -> Filter:
    given = {name: getattr(arguments, name, None) for name in Filter.__annotations__}
    return cast(Filter, {name: value for name, value in given.items() if value is not None})


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value


def moment(text: str) -> datetime:
    """Without a zone it is this machine's time, as on a clock on the wall."""
    try:
        return datetime.fromisoformat(text).astimezone()
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time like 2026-07-01T12:00:00Z") from None


def count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


SPOKEN = {"parent_task_id": "--parent", "q": "--search"}
READ_AS: dict[str, dict[str, Any]] = {
    "status": {"action": "append", "choices": get_args(Status), "help": "may be repeated: any of them"},
    "actor": {"help": "the kind of work"},
    "provider": {"help": "who does the work"},
    "lane": {"choices": get_args(Lane), "help": "retry: has failed before"},
    "user_id": {"metavar": "USER", "help": "whose tasks"},
    "tag": {"action": "append", "help": "may be repeated: all of them"},
    "project_id": {"type": PROJECT_LABEL.read, "metavar": "PROJECT", "help": "its name, its id, or a label of tasks"},
    "workflow_id": {
        "type": WORKFLOW_LABEL.read,
        "metavar": "WORKFLOW",
        "help": "its name, its id, or a label of tasks",
    },
    "workflow_run_id": {"metavar": "ID"},
    "interaction_id": {"metavar": "ID"},
    "parent_task_id": {"type": TASK.read, "metavar": "TASK"},
    "request_id": {"metavar": "ID", "help": "of the request that submitted them"},
    "error_type": {"metavar": "TYPE", "help": "for example NetworkTimeout"},
    "fingerprint": {"metavar": "TEXT", "help": "as `windlass dlq --group -o json` shows it"},
    "created_after": {"type": moment, "metavar": "TIME", "help": "ISO 8601, such as 2026-07-01T12:00Z"},
    "created_before": {"type": moment, "metavar": "TIME"},
    "updated_after": {"type": moment, "metavar": "TIME"},
    "q": {"metavar": "TEXT", "help": "in error messages, prompts and contents"},
}
"""How a filter is read from a command line; one that is not here is a text."""
