"""What a shell asks for when it completes a word that only the API knows."""

import argparse
from typing import Any, Final

ASKED: Final = "windlass actors list 2>/dev/null | tail -n +2 | cut -f1"
ACTOR_NAMES: Final[dict[str, Any]] = {
    "bash": "_windlass_actor_names",
    "zsh": "_windlass_actor_names",
    "fish": f"({ASKED})",
    "tcsh": f"`{ASKED}`",
    "preamble": {
        "bash": f'_windlass_actor_names() {{ compgen -W "$({ASKED})" -- "$1"; }}',
        "zsh": f"_windlass_actor_names() {{ compadd -- $({ASKED}) }}",
    },
}


def is_an_actor(argument: argparse.Action) -> None:
    """Completed by the names that are registered now."""
    argument.complete = ACTOR_NAMES  # type: ignore[attr-defined] # shtab's own name for it
