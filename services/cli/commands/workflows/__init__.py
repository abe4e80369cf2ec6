"""`windlass workflows` and `windlass approvals`: graphs of tasks, and the people who are asked."""

from windlass.services.cli.commands.arguments import Commands
from windlass.services.cli.commands.workflows import approvals, controlling, listing, submitting, watching


def add_commands(commands: Commands) -> None:
    parser = commands.add(
        "workflows", listing.list_workflows, "show workflows and what becomes of them", "windlass workflows"
    )
    actions = Commands.below(parser)
    for group in (submitting, listing, watching, controlling):
        group.add_actions(actions)
    approvals.add_commands(commands)
