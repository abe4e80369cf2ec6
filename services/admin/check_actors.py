"""`windlass actors check`: checks the actors, agents and schedules of the settings, without a server."""

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Final

from windlass.services.admin.loading import Found, find, find_in_modules
from windlass.services.admin.schedules import wrong_schedules
from windlass.shared.actors.definition import Definition
from windlass.shared.scrubbing import scrub
from windlass.shared.settings import Settings
from windlass.shared.settings.loading import settings_or_exit

INTERPRETER: Final = re.compile(r"python[\d.]*|(?:ba|da|z)?sh|node|perl|ruby")
CODE_FOLLOWS: Final = re.compile(r"-\w*[cme]")
"""An option after which comes code, or a module's name, and not a file."""


def report(found: Found) -> int:
    """One line for each actor on the one channel, each mistake on the other."""
    for each in sorted(found.definitions, key=lambda each: each.name):
        print(line_of(each))
    for mistake in found.mistakes:
        print(scrub(f"windlass: {mistake}"), file=sys.stderr)
    return 1 if found.mistakes else 0


def line_of(definition: Definition) -> str:
    schema = definition.payload_schema
    needed = set(schema.get("required", ()))
    fields = ", ".join(name if name in needed else f"{name}?" for name in schema.get("properties", ()))
    by = f"by {definition.provider}" if definition.provider else "by a provider that each task names"
    origin = f" from {definition.module}" if definition.module else ""
    return f"{definition.name}({fields}) {by}, {definition.timeout_seconds:g} s, version {definition.version}{origin}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="windlass actors check", description=__doc__)
    parser.add_argument("--modules", action="store_true", help="check only what WINDLASS_ACTORS names")
    settings, is_of_modules = settings_or_exit(), parser.parse_args().modules
    return report(find_in_modules(settings) if is_of_modules else check(settings))


def check(settings: Settings) -> Found:
    found = find(settings)
    mistakes = [*found.mistakes, *missing_programs(settings), *wrong_schedules(settings, found)]
    return Found(found.definitions, mistakes)


def missing_programs(settings: Settings) -> Iterator[str]:
    """Agents whose program, or whose script for an interpreter, is not on this machine. What is in a task's own path
    is not looked for."""
    where = f"{settings.config}: " if settings.config else ""
    for name, agent in settings.agents.items():
        program, script = agent.command[0], script_of(agent.command)
        if "{task_id}" not in program and agent.find(program) is None:
            searched = "" if "/" in program else f" in {agent.path}"
            yield f"{where}[agents.{name}] command: there is no program {program}{searched}"
        elif script is not None and not script.is_file():
            yield f"{where}[agents.{name}] command: there is no file {script}"


def script_of(command: Sequence[str]) -> Path | None:
    """The file that an interpreter is to run, if the command names one by its whole path."""
    options = list(takewhile(lambda each: each.startswith("-"), command[1:]))
    script = next(iter(command[1 + len(options) :]), "")
    is_run = INTERPRETER.fullmatch(Path(command[0]).name) and not any(map(CODE_FOLLOWS.fullmatch, options))
    return Path(script) if is_run and script.startswith("/") and "{task_id}" not in script else None


if __name__ == "__main__":
    sys.exit(main())
