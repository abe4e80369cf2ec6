"""`windlass actors`: lists the actors, shows one of them, and checks or registers those of the settings."""

import argparse
from functools import partial
from typing import Final

from windlass import ActorDescription
from windlass.client import calls
from windlass.client.task import Listing
from windlass.services.cli.becoming import become
from windlass.services.cli.commands import forgetting
from windlass.services.cli.commands.arguments import Commands
from windlass.services.cli.commands.completing import is_an_actor
from windlass.services.cli.display.tables import Facts, Table
from windlass.services.cli.display.texts import known
from windlass.services.cli.session import Session

OF_THE_SETTINGS: Final = {
    "check": (
        "windlass.services.admin.check_actors",
        "check the actors, agents and schedules of the settings, without a server",
    ),
    "register": (
        "windlass.services.admin.register",
        "register the actors of the settings in Postgres, so that the API accepts tasks for them",
    ),
}


def add_commands(commands: Commands) -> None:
    actions = Commands.below(commands.add("actors", list_actors, "list the registered actors", "windlass actors"))
    actions.add("list", list_actors, "list the registered actors", "windlass actors list")
    parser = actions.add("show", show, "show an actor's payload and versions", "windlass actors show summarize")
    is_an_actor(parser.add_argument("name", metavar="NAME"))
    forgetting.add_actions(actions)
    for name, (module, duty) in OF_THE_SETTINGS.items():
        actions.add_alone(name, partial(run_here, module), duty, f"windlass actors {name}")


def run_here(module: str, _arguments: argparse.Namespace) -> int:
    return become(module)


def list_actors(session: Session, _arguments: argparse.Namespace) -> None:
    session.show(calls.actors(), actors_table)


def show(session: Session, arguments: argparse.Namespace) -> None:
    session.show(calls.actor(arguments.name), actor_facts)


def actors_table(answer: Listing[ActorDescription]) -> Table:
    rows = [
        (
            each.name, known(each.default_provider), known(each.providers), f"{each.timeout_seconds:g} s",
            str(each.workers), each.version, each.description,
        )
        for each in answer.items
    ]  # fmt: skip
    return Table(
        columns=("ACTOR", "DEFAULT", "PROVIDERS", "TIMEOUT", "WORKERS", "VERSION", "DOES"),
        rows=rows,
        empty="no actors",
        wide=frozenset({"PROVIDERS", "DOES"}),
        least=("VERSION", "TIMEOUT", "DEFAULT"),
    )


def actor_facts(actor: ActorDescription) -> Facts:
    needed = set(actor.payload_schema.get("required", ()))
    fields = actor.payload_schema.get("properties", {})
    return Facts(
        [
            ("actor", actor.name),
            ("does", actor.description),
            ("providers", known(actor.providers)),
            ("default", known(actor.default_provider)),
            ("timeout", f"{actor.timeout_seconds:g} s"),
            ("max_retries", known(actor.max_retries)),
            *((f"/{name}" + ("" if name in needed else " (optional)"), about_field(fields[name])) for name in fields),
            *((f"version {each.version}", f"{each.live_workers} workers run it") for each in actor.versions),
            ("example", f"windlass submit {actor.name} {words_of(actor.example)}".rstrip()),
        ]
    )


def about_field(schema: object) -> str:
    """What the schema says of it; of one that may be null, the other kind."""
    about = schema if isinstance(schema, dict) else {}
    kinds = [each for each in about.get("anyOf", ()) if isinstance(each, dict) and each.get("type") != "null"]
    one = {**about, **(kinds[0] if len(kinds) == 1 else {})}
    kind = " or ".join(map(str, one["enum"])) if "enum" in one else str(one.get("type", ""))
    return ": ".join(filter(None, (kind, str(one.get("description", "")))))


def words_of(example: dict[str, object]) -> str:
    return " ".join(
        f"{name}={value!r}" if isinstance(value, str) else f"{name}={value}" for name, value in example.items()
    )
