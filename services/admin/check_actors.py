"""`windlass actors check`: loads what the settings name, draws and checks its schemas, and needs no server for it."""

import argparse
import sys

from windlass.services.admin.loading import Found, find, find_in_modules
from windlass.shared.actors.definition import Definition
from windlass.shared.scrubbing import scrub
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
    return report(find_in_modules(settings) if is_of_modules else find(settings))


if __name__ == "__main__":
    sys.exit(main())
