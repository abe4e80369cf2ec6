"""`windlass projects`: backlogs, and run queues that can be stopped."""

from windlass.services.cli.commands.arguments import Commands
from windlass.services.cli.commands.projects import backlog, making, queue, watching


def add_commands(commands: Commands) -> None:
    parser = commands.add("projects", making.list_projects, "show projects and what they do", "windlass projects")
    actions = Commands.below(parser)
    for group in (making, backlog, queue, watching):
        group.add_actions(actions)
