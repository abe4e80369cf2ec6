"""`windlass schedules create | put | delete`: schedules themselves."""

import argparse
from typing import cast, get_args

from windlass.client.call import Call
from windlass.client.projects.documents import Mode
from windlass.client.schedules import calls
from windlass.client.schedules.documents import Schedule
from windlass.client.schedules.options import ScheduleFields, Target
from windlass.services.cli.commands.arguments import Commands, add_reason
from windlass.services.cli.commands.projects.task_fields import add_fields, fields_of
from windlass.services.cli.commands.schedules import views
from windlass.services.cli.commands.schedules.naming import add_policies, add_schedule, add_times
from windlass.services.cli.commands.workflows.files import Unreadable, document_from
from windlass.services.cli.references import PROJECT
from windlass.services.cli.session import Session

EXAMPLE = "--cron '30 2 * * 1-5' --timezone Europe/Berlin --actor summarize content='What happened today?'"


def add_actions(actions: Commands) -> None:
    for name, command, duty in (
        ("create", create, "start a task, a workflow or a project at its times"),
        ("put", put, "make a schedule, or change the one of that name to be like this"),
    ):
        parser = actions.add(name, command, duty, f"windlass schedules {name} nightly {EXAMPLE}", intermixed=True)
        parser.add_argument("name", metavar="NAME")
        add_times(parser, required=True)
        add_policies(parser)
        target = parser.add_argument_group("what is started, if no task is")
        target.add_argument("--workflow", metavar="FILE", help="YAML or JSON, as POST /workflows takes it; - is stdin")
        target.add_argument("--project", type=PROJECT.read, metavar="PROJECT", help="its next run")
        target.add_argument("--mode", choices=get_args(Mode), help="of the project (single)")
        add_fields(parser)
        parser.set_defaults(refuse=parser.error)

    parser = actions.add(
        "delete", delete, "start nothing any more; what was started goes on", "windlass schedules delete nightly"
    )
    add_schedule(parser)
    add_reason(parser)


def create(session: Session, arguments: argparse.Namespace) -> None:
    tell(session, calls.create(arguments.name, target_of(arguments), fields_said(arguments)))


def put(session: Session, arguments: argparse.Namespace) -> None:
    tell(session, calls.put(arguments.name, target_of(arguments), fields_said(arguments)))


def delete(session: Session, arguments: argparse.Namespace) -> None:
    session.client.perform(calls.delete(arguments.schedule, arguments.reason))


def tell(session: Session, call: Call[Schedule]) -> None:
    session.show(call, views.schedule_facts)


def fields_said(arguments: argparse.Namespace) -> ScheduleFields:
    given = {name: getattr(arguments, name, None) for name in ScheduleFields.__annotations__}
    return cast(ScheduleFields, {name: value for name, value in given.items() if value is not None})


def target_of(arguments: argparse.Namespace) -> Target:
    """One of the three."""
    task = fields_of(arguments)
    said = [name for name, value in (("task", task), ("workflow", arguments.workflow), ("project", arguments.project))
            if value]  # fmt: skip
    if len(said) != 1:
        arguments.refuse("say what it starts: --actor and its payload, --workflow FILE or --project PROJECT")
    if arguments.project:
        return {"project": {"project_id": arguments.project, "mode": arguments.mode or "single"}}
    if arguments.mode:
        arguments.refuse("--mode is of a project")
    if arguments.workflow:
        try:
            return {"workflow": document_from(arguments.workflow)}
        except Unreadable as error:
            arguments.refuse(str(error))
    if "actor" not in task:
        arguments.refuse("--actor is missing: the kind of work, for example probe")
    return cast(Target, {"task": task})
