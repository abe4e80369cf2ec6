"""The commands that speak to the API, each group in a file of its own."""

import argparse

from windlass.services.cli.commands import (
    actors,
    doctor,
    drill,
    figures,
    keys,
    memory,
    overview,
    page,
    projects,
    providers,
    queues,
    save,
    schedules,
    submit,
    tasks,
    top,
    watch,
    webhooks,
    workers,
    workflows,
)
from windlass.services.cli.commands.arguments import Commands, add_connection
from windlass.services.cli.parsing import Parser

__all__ = ["add_commands", "add_connection"]

GROUPS = (
    submit,
    tasks,
    watch,
    projects,
    workflows,
    schedules,
    webhooks,
    memory,
    save,
    queues,
    top,
    providers,
    actors,
    workers,
    keys,
    overview,
    figures,
    page,
    doctor,
    drill,
)


def add_commands(commands: "argparse._SubParsersAction[Parser]") -> None:
    adder = Commands(commands)
    for group in GROUPS:
        group.add_commands(adder)
