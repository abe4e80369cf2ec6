"""What is driven against each other, and by whose rows somebody may stand in its way."""

from collections.abc import Awaitable, Callable

from tests.support.engine.locks.yard import Yard
from windlass.shared.settings import Settings
from windlass.shared.store.flow_control.flow import Rules

NERVOUS = Rules.of(Settings(breaker_least_results=2))

Move = Callable[[Yard], Awaitable[object]]
MOVES: dict[str, Move] = {}
GATES: dict[str, str] = {}
"""At whose rows, beside those of tasks, somebody stands in the way of a move."""


def move(function: Move) -> Move:
    """Drives it against all the others."""
    MOVES[function.__name__] = function
    return function


def at(rows: str) -> Callable[[Move], Move]:
    def gated(function: Move) -> Move:
        GATES[function.__name__] = rows
        return function

    return gated
