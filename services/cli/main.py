"""The `windlass` command: runs everything, or becomes one of its processes."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Final

PROCESSES: Final = {
    "api": ("services.api", "serve REST and the event streams"),
    "dispatcher": ("services.dispatcher", "hand due tasks to the provider queues"),
    "actors": ("services.actors", "carry tasks out"),
    "janitor": ("services.janitor", "find what is stale, lost or expired"),
    "migrate": ("shared.migrations", "bring the database to the newest schema, then exit"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    command = _parser().parse_args(arguments).command
    return _up() if command == "up" else _become(command)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="windlass",
        description="Carries long-running AI work and never lets go of it.",
        epilog="Settings are variables WINDLASS_* and the TOML file that WINDLASS_CONFIG names.",
    )
    parser.add_argument("--version", action="version", version=f"windlass {version('windlass')}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    commands.add_parser("up", help="run everything here, with a Postgres and a RabbitMQ of its own")
    for name, (_, duty) in PROCESSES.items():
        commands.add_parser(name, help=duty)
    return parser


def _up() -> int:
    # Imported late: the other commands become another program and need none of it.
    from services.cli.up import up  # noqa: PLC0415

    return up()


def _become(command: str) -> int:
    module, _ = PROCESSES[command]
    os.execv(sys.executable, [sys.executable, "-m", module])  # noqa: S606 - it becomes that process
