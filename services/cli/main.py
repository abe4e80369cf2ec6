"""The `windlass` command: runs everything, becomes one of its processes, or speaks to the API."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from windlass.services.cli.becoming import become
from windlass.shared.process import pulse

if TYPE_CHECKING:
    from windlass.services.cli.parsing import Parser

PROCESSES: Final = {
    "api": ("windlass.services.api", "serve the REST API and the event streams"),
    "dispatcher": ("windlass.services.dispatcher", "send due tasks to the provider queues"),
    "worker": ("windlass.services.actors", "run tasks"),
    "orchestrator": ("windlass.services.orchestrator", "relay what happens to tasks to the features"),
    "janitor": ("windlass.services.janitor", "find stale, lost and expired tasks"),
    "migrate": ("windlass.services.admin.migrate", "migrate the database to the newest schema, then exit"),
}
MIGRATING: Final = {
    "wait": "change nothing, and wait until another process has migrated the database",
    "register": "then register the actors, as `windlass actors register` does",
    "force": "migrate although workers of an earlier edition are running",
}
SHELLS: Final = ("bash", "zsh", "fish", "tcsh")
EPILOG: Final = """\
Settings are variables WINDLASS_* and the TOML file that WINDLASS_CONFIG names. Commands that speak to the API find it
by --url and --key, WINDLASS_URL and WINDLASS_API_KEY, or else in the data directory of the `make up` that runs here.

"""


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["alive"] and not {"-h", "--help"} & set(given):
        # A kubelet asks every few seconds, in every pod: nothing is imported that is not needed for the answer.
        return pulse.main(given[1:])
    if given[:2] == ["keys", "create"] and "--bootstrap" in given:
        # There is no key yet to call the API with, so this key is written to the database directly.
        return become("windlass.services.admin.first_key", *given[2:])
    parser = build_parser()
    parsed = parser.parse_args(given or ["--help"])
    if parsed.command == "up":
        if parsed.actors:
            os.environ["WINDLASS_ACTORS"] = ",".join(map(_from_anywhere, parsed.actors))
        return become("windlass.services.laptop", *(["--reload"] if parsed.reload else []))
    if parsed.command in PROCESSES:
        return become(
            PROCESSES[parsed.command][0], *(f"--{each}" for each in MIGRATING if getattr(parsed, each, False))
        )
    if parsed.command == "completion":
        return _complete(parser, parsed.shell)
    code: int = parsed.run(parsed)
    return code


def build_parser() -> "Parser":
    from importlib.metadata import version  # noqa: PLC0415 - see above

    from windlass.services.cli.commands import add_commands, add_connection, after_restore  # noqa: PLC0415
    from windlass.services.cli.exit_codes import MEANINGS  # noqa: PLC0415
    from windlass.services.cli.parsing import Parser  # noqa: PLC0415

    parser = Parser(
        prog="windlass",
        description="Carries long-running AI work and never lets go of it.",
        epilog=EPILOG + MEANINGS,
        example="windlass submit probe seconds=5 steps=10 --watch",
    )
    parser.add_argument("--version", action="version", version=f"windlass {version('windlass')}")
    add_connection(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    up = commands.add_parser(
        "up",
        help="run everything here, with a Postgres and a RabbitMQ of its own",
        example="windlass up --actors our_actors.py --reload",
    )
    up.add_argument(
        "--actors",
        metavar="FILE",
        action="append",
        help="serve all actors that this file, or module, declares; can be given several times",
    )
    up.add_argument(
        "--reload",
        action="store_true",
        help="start the actors again when a file beside them changes; what runs is handed back",
    )
    for name, (_, duty) in PROCESSES.items():
        process = commands.add_parser(name, help=duty, example=f"windlass {name}")
        if name == "migrate":
            for option, meaning in MIGRATING.items():
                process.add_argument(f"--{option}", action="store_true", help=meaning)
    after_restore.add_command(commands)
    alive = commands.add_parser(
        "alive",
        help="whether the process that beats into a WINDLASS_PULSE_FILE lives",
        example="windlass alive --ready /tmp/pulse",
    )
    alive.add_argument("--ready", action="store_true", help="and has begun its work")
    alive.add_argument("file", metavar="FILE")
    add_commands(commands)
    completion = commands.add_parser(
        "completion",
        help="print a script that completes commands in your shell",
        example="windlass completion fish > ~/.config/fish/completions/windlass.fish",
    )
    completion.add_argument("shell", choices=SHELLS)
    return parser


def _from_anywhere(named: str) -> str:
    """A file's whole path: the processes may be started elsewhere."""
    return str(Path(named).absolute()) if named.endswith(".py") or "/" in named else named


def _complete(parser: "Parser", shell: str) -> int:
    import shtab  # noqa: PLC0415

    print(shtab.complete(parser, shell))
    return 0
