"""`windlass watch`: a task's progress while it happens, over restarts of the API."""

import argparse

from windlass import WindlassError
from windlass.services.cli import exit_codes
from windlass.services.cli.commands.arguments import Commands
from windlass.services.cli.display.progress import Display, JsonLines, Lines, LiveBar
from windlass.services.cli.display.texts import spent
from windlass.services.cli.references import AN_ID, TASK
from windlass.services.cli.session import Session

CODES = {"complete": exit_codes.DONE, "error": exit_codes.FAILED, "cancelled": exit_codes.FAILED}


def add_commands(commands: Commands) -> None:
    parser = commands.add("watch", watch_task, "show a task's progress until it has ended", f"windlass watch {AN_ID}")
    parser.add_argument("task_id", type=TASK.read, metavar="TASK")
    parser.add_argument("--after", type=int, default=0, metavar="SEQ", help="leave out what came up to this number")


def watch_task(session: Session, arguments: argparse.Namespace) -> int:
    return watch(session, arguments.task_id, after=arguments.after)


def watch(session: Session, task_id: str, *, after: int = 0) -> int:
    """Its whole story up to now, then what happens; leaving it early leaves the task alone."""
    try:
        session.client.get(task_id)  # so that a wrong id or address is said at once, not tried for ever
        with display(session) as shown:
            code = follow(session, shown, task_id, after)
    except KeyboardInterrupt:
        session.screen.remark(f"the task goes on; see how it goes: windlass watch {task_id}")
        return exit_codes.INTERRUPTED
    return ended(session, task_id, code)


def follow(session: Session, shown: Display, task_id: str, after: int) -> int | None:
    """None when everything had been told before."""
    for message in session.watching_client().messages(
        task_id, after=after, on_interruption=shown.interrupted, on_resumption=shown.resumed
    ):
        shown.tell(message)
        if message.event in CODES:
            return CODES[message.event]
    return None


def ended(session: Session, task_id: str, code: int | None) -> int:
    """Says what it cost, if that can be had: how it ended is known without."""
    try:
        task = session.client.get(task_id)
    except WindlassError:
        if code is None:
            raise
        return code
    if task.usage is not None and not session.screen.as_json:
        session.screen.remark(f"it cost {spent(task.usage)}")
    if code is None:
        return exit_codes.DONE if task.status == "completed" else exit_codes.FAILED
    return code


def display(session: Session) -> Display:
    screen = session.screen
    if screen.as_json:
        return JsonLines(screen)
    return LiveBar(screen.console) if screen.is_terminal else Lines(screen)
