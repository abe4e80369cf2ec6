"""`windlass actors forget`: removes an actor that no configuration names any more."""

import argparse

from windlass.client import calls
from windlass.client.operations import ForgottenActor
from windlass.services.cli.commands.arguments import Commands
from windlass.services.cli.commands.completing import is_an_actor
from windlass.services.cli.display.tables import Facts
from windlass.services.cli.display.texts import known
from windlass.services.cli.session import Session


def add_actions(actions: Commands) -> None:
    parser = actions.add(
        "forget", forget, "remove an actor that no configuration names any more", "windlass actors forget translate"
    )
    is_an_actor(parser.add_argument("name", metavar="NAME"))


def forget(session: Session, arguments: argparse.Namespace) -> None:
    session.show(calls.forget_actor(arguments.name), forgotten_facts)


def forgotten_facts(forgotten: ForgottenActor) -> Facts:
    return Facts(
        [
            ("forgotten", forgotten.name),
            ("queues", known(forgotten.queues)),
            ("providers", known(forgotten.providers)),
        ]
    )
