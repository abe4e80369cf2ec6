"""What a shell asks for when it completes a word that only the API knows."""

import argparse
from typing import Any


def is_an_actor(argument: argparse.Action) -> None:
    """Completed by the names that are registered now."""
    _completed_by("actor_names", "windlass actors list", argument)


def is_a_project(argument: argparse.Action) -> None:
    """Completed by the ids of those that are not archived."""
    _completed_by("project_ids", "windlass projects list", argument)


def is_a_workflow(argument: argparse.Action) -> None:
    """Completed by the ids of the newest."""
    _completed_by("workflow_ids", "windlass workflows list", argument)


def is_a_schedule(argument: argparse.Action) -> None:
    """Completed by the names of the newest."""
    _completed_by("schedule_names", "windlass schedules list", argument)


def is_a_webhook(argument: argparse.Action) -> None:
    """Completed by the ids of the newest."""
    _completed_by("webhook_ids", "windlass webhooks list", argument)


def is_a_question(argument: argparse.Action) -> None:
    """Completed by the ids of the tasks that wait for a word."""
    _completed_by("asked_task_ids", "windlass approvals list", argument)


def _completed_by(name: str, command: str, argument: argparse.Action) -> None:
    """The first column of a table, as a pipe gets it."""
    asked, function = f"{command} 2>/dev/null | tail -n +2 | cut -f1", f"_windlass_{name}"
    ways: dict[str, Any] = {
        "bash": function,
        "zsh": function,
        "fish": f"({asked})",
        "tcsh": f"`{asked}`",
        "preamble": {
            "bash": f'{function}() {{ compgen -W "$({asked})" -- "$1"; }}',
            "zsh": f"{function}() {{ compadd -- $({asked}) }}",
        },
    }
    argument.complete = ways  # type: ignore[attr-defined] # shtab's own name for it
