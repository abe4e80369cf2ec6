"""`windlass keys`: who may speak to the API."""

import argparse
from typing import get_args

from windlass import Key, NewKey
from windlass.client import calls
from windlass.client.options import Role
from windlass.client.task import Listing
from windlass.services.cli.commands.arguments import Commands, seconds
from windlass.services.cli.display.tables import Facts, Table
from windlass.services.cli.display.texts import known, moment
from windlass.services.cli.references import KEY
from windlass.services.cli.session import Session


def add_commands(commands: Commands) -> None:
    actions = Commands.below(commands.add("keys", keys, "show who may speak to the API", "windlass keys"))
    parser = actions.add(
        "create", create, "make a key; it is shown this once", "windlass keys create --role user --user alice"
    )
    parser.add_argument("--role", choices=get_args(Role), default="user", help="user (its own tasks), viewer or admin")
    parser.add_argument("--user", dest="user_id", required=True, help="whose key")
    parser.add_argument("--name", help="to tell keys apart")
    parser.add_argument("--expires-in", dest="expires_in_seconds", type=seconds, metavar="SECONDS")
    parser = actions.add("revoke", revoke, "end a key for good", "windlass keys revoke abc123")
    parser.add_argument("key_id", type=KEY.read, metavar="KEY_ID")


def keys(session: Session, _arguments: argparse.Namespace) -> None:
    call = calls.keys()
    document = session.ask_pages(call)
    session.screen.show(document, keys_table(call.read(document)))


def create(session: Session, arguments: argparse.Namespace) -> None:
    call = calls.create_key(arguments.role, arguments.user_id, arguments.name, arguments.expires_in_seconds)
    session.show(call, new_key_facts)
    session.screen.remark("keep the key: it cannot be shown again")


def revoke(session: Session, arguments: argparse.Namespace) -> None:
    session.show(calls.delete_key(arguments.key_id), key_facts)


def keys_table(answer: Listing[Key]) -> Table:
    rows = [
        (each.key_id, each.role, known(each.user_id), known(each.name), moment(each.created_at), end(each))
        for each in answer.items
    ]
    return Table(("KEY_ID", "ROLE", "USER", "NAME", "CREATED", "ENDS"), rows, "no keys", least=("CREATED",))


def key_facts(key: Key) -> Facts:
    return Facts(
        [
            ("key_id", key.key_id),
            ("role", key.role),
            ("user", known(key.user_id)),
            ("name", known(key.name)),
            ("created_at", known(key.created_at)),
            ("ends", end(key)),
        ]
    )


def new_key_facts(key: NewKey) -> Facts:
    return Facts([("key", key.key), *key_facts(key).lines])


def end(key: Key) -> str:
    return f"revoked {moment(key.revoked_at)}" if key.revoked_at else moment(key.expires_at)
