"""`windlass webhooks`: who is told of what happens, and what has become of each delivery."""

from windlass.services.cli.commands.arguments import Commands
from windlass.services.cli.commands.webhooks import deliveries, endpoints


def add_commands(commands: Commands) -> None:
    parser = commands.add("webhooks", endpoints.list_webhooks, "show who is told of what happens", "windlass webhooks")
    actions = Commands.below(parser)
    for group in (endpoints, deliveries):
        group.add_actions(actions)
