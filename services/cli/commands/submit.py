"""`windlass submit`: a task from the command line."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Final, cast

from windlass import AskFirst, SubmitOptions
from windlass.client import calls
from windlass.services.cli.commands.arguments import Commands, moment, seconds
from windlass.services.cli.commands.completing import is_an_actor
from windlass.services.cli.commands.tasks import show_ended
from windlass.services.cli.commands.watch import watch
from windlass.services.cli.references import PROJECT_LABEL, TASK, WORKFLOW_LABEL
from windlass.services.cli.session import Session

PRIORITIES: Final = {"critical": 0, "high": 1, "medium": 2, "low": 3}


def add_commands(commands: Commands) -> None:
    parser = commands.add(
        "submit",
        submit,
        "submit a task",
        "windlass submit probe seconds=5 steps=10 --tag first --watch",
        intermixed=True,
    )
    is_an_actor(parser.add_argument("actor", help="the kind of work, for example probe"))
    parser.add_argument("fields", nargs="*", type=payload_field, metavar="NAME=VALUE", help="payload; JSON, else text")
    parser.add_argument(
        "--payload", type=payload, metavar="JSON", help="the payload as a whole; @FILE reads a file, - standard input"
    )
    after = parser.add_argument_group("then").add_mutually_exclusive_group()
    after.add_argument("--wait", action="store_true", help="until it has ended; exit code 1 if not completed")
    after.add_argument("--wait-timeout", type=seconds, metavar="SECONDS", help="the same, for no longer than this")
    after.add_argument("--watch", action="store_true", help="show its progress until it has ended")
    _add_options(parser)
    parser.set_defaults(refuse=parser.error)


def _add_options(parser: argparse.ArgumentParser) -> None:
    """Named as the API names them, so that `options` finds them."""
    group = parser.add_argument_group("the task")
    add_task_fields(group)
    group.add_argument("--project", dest="project_id", type=PROJECT_LABEL.read, metavar="PROJECT")
    group.add_argument("--workflow", dest="workflow_id", type=WORKFLOW_LABEL.read, metavar="WORKFLOW")
    group.add_argument("--parent", dest="parent_task_id", type=TASK.read, metavar="TASK")
    group.add_argument(
        "--after",
        dest="completed",
        action="append",
        type=TASK.read,
        metavar="TASK",
        help="not before it has completed; "
        'may be repeated, and the payload may hold its result: \'text={"$from": "TASK"}\'',
    )
    group.add_argument(
        "--after-end",
        dest="ended",
        action="append",
        type=TASK.read,
        metavar="TASK",
        help="not before it has ended, in any way; may be repeated",
    )
    group.add_argument("--approval", metavar="MESSAGE", help="what a person is asked before it may start")
    group.add_argument("--approval-expires", type=seconds, metavar="SECONDS", help="nobody's word for so long is a no")
    group.add_argument("--dedupe-key", metavar="KEY", help="not twice while a task of this key lives or has completed")
    group.add_argument("--dedupe-ttl", dest="dedupe_ttl_seconds", type=seconds, metavar="SECONDS")
    group.add_argument("--idempotency-key", metavar="KEY", help="the same key is the same submit; else made up")
    group.add_argument("--webhook-url", metavar="URL", help="deliver the event of its end to this URL")
    group.add_argument("--user", dest="user_id", help="for somebody else; admins only")


def add_task_fields(group: "argparse._ArgumentGroup") -> None:
    """What a project's item may say as well."""
    group.add_argument("--provider", help="who does the work; else the actor's own default")
    group.add_argument("--type", dest="task_type", help="a name of your own for this kind of task")
    group.add_argument("--priority", type=priority, metavar="0-9", help="0 or critical, 1 high, 2 medium, 3 low, …")
    group.add_argument("--max-retries", type=int, metavar="N")
    group.add_argument("--timeout", dest="timeout_seconds", type=seconds, metavar="SECONDS", help="for one attempt")
    group.add_argument("--max-age", dest="max_age_seconds", type=seconds, metavar="SECONDS", help="then it is buried")
    group.add_argument("--at", dest="run_at", type=moment, metavar="TIME", help="not before; such as 2026-07-01T12:00Z")
    group.add_argument("--delay", dest="delay_seconds", type=seconds, metavar="SECONDS", help="not before")
    group.add_argument("--tag", dest="tags", action="append", help="may be repeated")


def submit(session: Session, arguments: argparse.Namespace) -> int:
    whole = {**(arguments.payload or {}), **dict(arguments.fields)}
    call = calls.submit(arguments.actor, whole, arguments.idempotency_key, options(arguments))
    document = session.client.ask(call)
    task = call.read(document)
    if arguments.watch:
        return watch(session, task.task_id)
    if arguments.wait or arguments.wait_timeout is not None:
        return show_ended(session, task.task_id, arguments.wait_timeout)
    if session.screen.as_json:
        session.screen.document(document)
    else:
        session.screen.line(task.task_id)
        if task.deduplicated:
            session.screen.remark(f"there was one already; it is {task.status}")
        if task.webhook_secret is not None:
            session.screen.remark(f"a webhook was made for its url, with this secret, told once: {task.webhook_secret}")
        if session.screen.is_terminal:
            session.screen.remark(f"{task.status}; see how it goes: windlass watch {task.task_id}")
    return 0


def options(arguments: argparse.Namespace) -> SubmitOptions:
    given = {name: getattr(arguments, name, None) for name in SubmitOptions.__annotations__}
    given["depends_on"] = [
        *(arguments.completed or ()),
        *({"key": each, "on": "ended"} for each in arguments.ended or ()),
    ]
    given["approval"] = asked_first(arguments)
    return cast(SubmitOptions, {name: value for name, value in given.items() if value not in (None, [])})


def asked_first(arguments: argparse.Namespace) -> AskFirst | None:
    if arguments.approval is None:
        if arguments.approval_expires is not None:
            arguments.refuse("--approval-expires wants --approval: what is asked?")
        return None
    return {"message": arguments.approval, "expires_in_seconds": arguments.approval_expires}


def payload_field(text: str) -> tuple[str, Any]:
    """`steps=5` is a number and `prompt=a hat` a text; a text that looks like JSON wants quotes: `prompt='"5"'`."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def payload(text: str) -> dict[str, Any]:
    document = json_from(text)
    if not isinstance(document, dict):
        raise argparse.ArgumentTypeError("a payload is a JSON object: {…}")
    return document


def json_from(text: str) -> Any:
    """Itself, or what stands in a file (`@FILE`) or comes by standard input (`-`)."""
    try:
        if text == "-":
            text = sys.stdin.read()
        elif text.startswith("@"):
            text = Path(text[1:]).read_text()
        return json.loads(text)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"cannot read {text[1:]}: {error.strerror}") from None
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"not JSON: {error}") from None


def priority(text: str) -> int:
    if text in PRIORITIES:
        return PRIORITIES[text]
    if text.isascii() and text.isdigit() and int(text) <= 9:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is neither 0 to 9 nor one of {', '.join(PRIORITIES)}")
