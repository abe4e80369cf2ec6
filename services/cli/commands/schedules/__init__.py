"""`windlass schedules`: what is started when, and what became of each time that it was due."""

from windlass.services.cli.commands.arguments import Commands
from windlass.services.cli.commands.schedules import due_times, listing, making, moving


def add_commands(commands: Commands) -> None:
    parser = commands.add(
        "schedules", listing.list_schedules, "show schedules and when they are due", "windlass schedules"
    )
    actions = Commands.below(parser)
    for group in (making, listing, moving, due_times):
        group.add_actions(actions)
