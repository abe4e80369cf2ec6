"""`windlass actors check`: checks the actors, agents and schedules of the settings, without a server."""

import argparse
import sys
from collections.abc import Iterator

from windlass.services.admin.loading import Found, find, find_in_modules
from windlass.services.admin.schedules import wrong_schedules
from windlass.shared.actors.definition import Definition
from windlass.shared.scrubbing import scrub
from windlass.shared.settings import Settings
from windlass.shared.settings.loading import settings_or_exit


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
    """Agents whose program is not on this machine; a program in a task's own path is not looked for."""
    where = f"{settings.config}: " if settings.config else ""
    for name, agent in settings.agents.items():
        program = agent.command[0]
        if "{task_id}" not in program and agent.find(program) is None:
            yield f"{where}[agents.{name}] command: there is no program {program} in {agent.path}"


if __name__ == "__main__":
    sys.exit(main())
