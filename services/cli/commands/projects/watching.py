"""`windlass projects watch`: what a project does while it does it, over restarts of the API."""

import argparse
from datetime import UTC, datetime

from windlass import ItemEvent, QueueEvent, RunEvent, StreamMessage, WatchEvent
from windlass.client.projects.watching import typed
from windlass.services.cli import exit_codes
from windlass.services.cli.commands.arguments import Commands
from windlass.services.cli.commands.projects.making import add_project
from windlass.services.cli.commands.projects.views import standing
from windlass.services.cli.display.progress import JsonLines
from windlass.services.cli.display.texts import clean, describe
from windlass.services.cli.references import AN_ID
from windlass.services.cli.session import Session

ENDED_WELL = (None, "finished", "stopped")


def add_actions(actions: Commands) -> None:
    parser = actions.add(
        "watch", watch_project, "show what a project does until it is idle", f"windlass projects watch {AN_ID}"
    )
    add_project(parser)
    parser.add_argument("--after", type=int, metavar="SEQ", help="from this number of its history on, not from now")


class Lines(JsonLines):
    """Each change as one line, with the time at which it was told."""

    def tell(self, message: StreamMessage) -> None:
        if (event := typed(message)) is not None:
            clock = datetime.now(UTC).astimezone().strftime("%H:%M:%S")
            self._screen.line(f"{clock}  {line_of(event)}".rstrip())


def watch_project(session: Session, arguments: argparse.Namespace) -> int:
    return watch(session, arguments.project_id, after=arguments.after)


def watch(session: Session, project_id: str, *, after: int | None = None) -> int:
    """Leaving it early leaves the project alone."""
    try:
        session.client.projects.get(project_id)  # so that a wrong id or address is said at once, not tried for ever
        shown = JsonLines(session.screen) if session.screen.as_json else Lines(session.screen)
        projects = session.watching_client().projects
        for message in projects.messages(
            project_id, after=after, on_interruption=shown.interrupted, on_resumption=shown.resumed
        ):
            shown.tell(message)
    except KeyboardInterrupt:
        session.screen.remark(f"the project goes on; see how it goes: windlass projects watch {project_id}")
        return exit_codes.INTERRUPTED
    reason = session.client.projects.status(project_id).stop_reason
    return exit_codes.DONE if reason in ENDED_WELL else exit_codes.FAILED


def line_of(event: WatchEvent) -> str:
    match event:
        case QueueEvent():
            return f"queue  {standing(event)}"
        case RunEvent():
            why = f": {describe(event.error)}" if event.error is not None else ""
            return f"run    {event.state:<9}  task {event.task_id}{why}"
        case ItemEvent():
            return f"item   {event.state:<9}  {event.type}  {clean(event.title or event.item_id)}"
