"""`windlass projects run | loop | stop | force-stop`: what a project does."""

import argparse

from windlass.client.projects import calls
from windlass.client.projects.documents import Mode
from windlass.services.cli import exit_codes
from windlass.services.cli.commands.arguments import Commands, add_reason, seconds
from windlass.services.cli.commands.projects import views
from windlass.services.cli.commands.projects.making import add_project
from windlass.services.cli.commands.projects.watching import watch
from windlass.services.cli.references import AN_ID, ITEM
from windlass.services.cli.session import Session


def add_actions(actions: Commands) -> None:
    for name, command, duty in (
        ("run", run, "run the first item that waits, or one that is named"),
        ("loop", loop, "run one item after the other until none waits"),
    ):
        parser = actions.add(name, command, duty, f"windlass projects {name} {AN_ID} --watch")
        add_project(parser)
        parser.add_argument("--item", dest="item_id", type=ITEM.read, metavar="ITEM", help="begin with this one")
        parser.add_argument("--watch", action="store_true", help="show what happens until it is idle")
        add_reason(parser)

    parser = actions.add(
        "stop", stop, "let the open run end, and start no other", f"windlass projects stop {AN_ID} --reason enough"
    )
    add_project(parser)
    add_reason(parser)

    parser = actions.add(
        "force-stop",
        force_stop,
        "kill the open run and all that came of it, and prove it",
        f"windlass projects force-stop {AN_ID} --wait 50",
    )
    add_project(parser)
    parser.add_argument(
        "--wait",
        type=seconds,
        default=calls.PROOF_SECONDS,
        metavar="SECONDS",
        help=f"for the proof, at most 50 ({calls.PROOF_SECONDS:g}); exit code 6 if there is none by then",
    )
    add_reason(parser)


def run(session: Session, arguments: argparse.Namespace) -> int:
    return start(session, arguments, "single")


def loop(session: Session, arguments: argparse.Namespace) -> int:
    return start(session, arguments, "loop")


def start(session: Session, arguments: argparse.Namespace, mode: Mode) -> int:
    call = calls.run(arguments.project_id, mode, arguments.item_id, arguments.reason)
    if arguments.watch:
        session.client.perform(call)
        return watch(session, arguments.project_id)
    session.show(call, views.queue_facts)
    if session.screen.is_terminal:
        session.screen.remark(f"see how it goes: windlass projects watch {arguments.project_id}")
    return exit_codes.DONE


def stop(session: Session, arguments: argparse.Namespace) -> None:
    stopped = session.show(calls.stop(arguments.project_id, arguments.reason), views.queue_facts)
    if stopped.state == "stopping":
        session.screen.remark("its run goes on to its end, and no other starts; `force-stop` ends it now")


def force_stop(session: Session, arguments: argparse.Namespace) -> int:
    call = calls.force_stop(arguments.project_id, arguments.wait, arguments.reason)
    stopped = session.show(call, views.force_stop_facts)
    if not stopped.success:
        session.screen.remark("that nothing of it runs is not proven yet: it is stopping; asking again is fine")
        return exit_codes.WAIT_RAN_OUT
    if not stopped.killed_runs:
        session.screen.remark("there was nothing to kill")
    return exit_codes.DONE
