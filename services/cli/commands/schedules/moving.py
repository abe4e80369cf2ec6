"""`windlass schedules pause | resume | trigger | backfill`: what a schedule does."""

import argparse

from windlass.client.schedules import calls
from windlass.client.schedules.documents import ScheduleRun
from windlass.services.cli import exit_codes
from windlass.services.cli.commands.arguments import Commands, add_reason, moment
from windlass.services.cli.commands.schedules import views
from windlass.services.cli.commands.schedules.naming import add_schedule
from windlass.services.cli.session import Session


def add_actions(actions: Commands) -> None:
    for name, command, duty in (
        ("pause", pause, "start nothing until it is resumed"),
        ("resume", resume, "go on from now; what was due meanwhile was missed"),
        ("trigger", trigger, "start it now, beside its times; exit code 1 if something is in the way"),
    ):
        parser = actions.add(name, command, duty, f"windlass schedules {name} nightly")
        add_schedule(parser)
        add_reason(parser)

    parser = actions.add(
        "backfill",
        backfill,
        "start the due times of a time that is past, those that never were",
        "windlass schedules backfill nightly 2025-06-01T00:00Z 2025-06-03T00:00Z",
    )
    add_schedule(parser)
    parser.add_argument("begin", type=moment, metavar="FROM", help="such as 2025-06-01T00:00Z")
    parser.add_argument("end", type=moment, metavar="TO", help="with it; at most 100 due times")
    add_reason(parser)


def pause(session: Session, arguments: argparse.Namespace) -> None:
    session.show(calls.pause(arguments.schedule, arguments.reason), views.schedule_facts)


def resume(session: Session, arguments: argparse.Namespace) -> None:
    session.show(calls.resume(arguments.schedule, arguments.reason), views.schedule_facts)


def trigger(session: Session, arguments: argparse.Namespace) -> int:
    run = session.show(calls.trigger(arguments.schedule, arguments.reason), views.run_facts)
    return exit_codes.DONE if begun(run) else exit_codes.FAILED


def backfill(session: Session, arguments: argparse.Namespace) -> int:
    call = calls.backfill(arguments.schedule, arguments.begin, arguments.end, arguments.reason)
    done = session.show(call, lambda answer: views.runs_table(answer.items, "it was never due in that time", None))
    return exit_codes.DONE if all(map(begun, done.items)) else exit_codes.FAILED


def begun(run: ScheduleRun) -> bool:
    """Or about to be, as soon as the last one has ended."""
    return run.outcome in {"started", "waiting"}
