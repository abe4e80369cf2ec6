"""The commands that speak to the API, each group in a file of its own."""

import argparse

from windlass.services.cli.commands import (
    doctor,
    drill,
    keys,
    overview,
    page,
    providers,
    queues,
    save,
    submit,
    tasks,
    top,
    watch,
    workers,
)
from windlass.services.cli.commands.arguments import Commands, add_connection
from windlass.services.cli.parsing import Parser

__all__ = ["add_commands", "add_connection"]

GROUPS = (submit, tasks, watch, save, queues, top, providers, workers, keys, overview, page, doctor, drill)


def add_commands(commands: "argparse._SubParsersAction[Parser]") -> None:
    adder = Commands(commands)
    for group in GROUPS:
        group.add_commands(adder)
