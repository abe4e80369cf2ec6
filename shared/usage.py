"""What work has cost: three figures that are added up over calls and attempts; one that nobody told is null."""

import math
from collections.abc import Mapping
from typing import Any, Final

FIGURES: Final = ("cost_usd", "prompt_tokens", "completion_tokens")
MOST: Final = 10**15
"""More than this is nobody's bill."""


def figures_in(said: Mapping[str, Any]) -> tuple[dict[str, float], list[str]]:
    """Those that can be believed, and what is wrong with the others."""
    good: dict[str, float] = {}
    faults = []
    for name, value in said.items():
        if name not in FIGURES:
            faults.append(f"{name[:50]!r} is none of {', '.join(FIGURES)}")
        elif value is not None and (fault := _fault_in(name, value)):
            faults.append(f"{name} {fault}")
        elif value is not None:
            good[name] = value
    return good, faults


def _fault_in(name: str, value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "is no number"
    if not math.isfinite(value) or not 0 <= value <= MOST:
        return f"is not between 0 and {MOST:,}"
    return None if name == "cost_usd" or isinstance(value, int) else "is no whole number"


def added(before: Mapping[str, float], more: Mapping[str, float]) -> dict[str, float]:
    """Costs are decimals, and so is their sum."""
    together = {name: before.get(name, 0) + more.get(name, 0) for name in FIGURES if name in before or name in more}
    return {name: round(value, 12) if isinstance(value, float) else value for name, value in together.items()}
