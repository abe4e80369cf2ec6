"""`windlass workflows watch`: what becomes of a workflow and its tasks, over restarts of the API."""

import argparse
from datetime import UTC, datetime

from windlass import StreamMessage, WorkflowEvent, WorkflowMessage, WorkflowWatchEvent
from windlass.client.workflows.watching import typed
from windlass.services.cli import exit_codes
from windlass.services.cli.commands.arguments import Commands
from windlass.services.cli.commands.workflows.listing import add_workflow
from windlass.services.cli.commands.workflows.views import how_it_goes_on, standing
from windlass.services.cli.display.progress import JsonLines
from windlass.services.cli.display.texts import clean, told
from windlass.services.cli.references import AN_ID
from windlass.services.cli.session import Session


def add_actions(actions: Commands) -> None:
    parser = actions.add(
        "watch",
        watch_workflow,
        "show what becomes of a workflow until it has ended",
        f"windlass workflows watch {AN_ID}",
    )
    add_workflow(parser)
    parser.add_argument("--after", metavar="CURSOR", help="from this place on (`-o json` shows it), not from now")


class Lines(JsonLines):
    """Each change as one line, with the time at which it was told."""

    def tell(self, message: StreamMessage) -> None:
        event = typed(message) if isinstance(message, WorkflowMessage) else None
        if event is None:
            return
        clock = datetime.now(UTC).astimezone().strftime("%H:%M:%S")
        self._screen.line(f"{clock}  {line_of(event)}".rstrip())
        if isinstance(event, WorkflowEvent) and event.status == "escalated":
            self._screen.remark(how_it_goes_on(event.workflow_id))


def watch_workflow(session: Session, arguments: argparse.Namespace) -> int:
    return watch(session, arguments.workflow_id, after=arguments.after)


def watch(session: Session, workflow_id: str, *, after: str | None = None) -> int:
    """Leaving it early leaves the workflow alone."""
    try:
        session.client.workflows.get(workflow_id)  # so that a wrong id or address is said at once, not tried for ever
        shown = JsonLines(session.screen) if session.screen.as_json else Lines(session.screen)
        workflows = session.watching_client().workflows
        for message in workflows.messages(
            workflow_id, after=after, on_interruption=shown.interrupted, on_resumption=shown.resumed
        ):
            shown.tell(message)
    except KeyboardInterrupt:
        session.screen.remark(f"the workflow goes on; see how it goes: windlass workflows watch {workflow_id}")
        return exit_codes.INTERRUPTED
    status = session.client.workflows.get(workflow_id).status
    return exit_codes.DONE if status == "completed" else exit_codes.FAILED


def line_of(event: WorkflowWatchEvent) -> str:
    if isinstance(event, WorkflowEvent):
        return f"workflow  {standing(event)}"
    name = clean(event.key) if event.key is not None else event.task_id
    return f"task      {name}  {event.status}  {told(event.progress)}"
