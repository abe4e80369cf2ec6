"""`windlass memory`: what agents did, found again, and the models and jobs behind it."""

from windlass.services.cli.commands.arguments import Commands
from windlass.services.cli.commands.memory import embedding, events


def add_commands(commands: Commands) -> None:
    parser = commands.add("memory", events.list_events, "show what agents did, or find it again", "windlass memory")
    actions = Commands.below(parser)
    for group in (events, embedding):
        group.add_actions(actions)
