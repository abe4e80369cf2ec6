"""How urgent a task is: a number, or its word."""

from typing import Annotated, Literal

from pydantic import Field

from windlass.shared.suggestions import did_you_mean

PRIORITIES = {"critical": 0, "high": 1, "medium": 2, "low": 3}

Priority = Annotated[int, Field(ge=0, le=9)] | Literal["critical", "high", "medium", "low"]


def number_of(said: object) -> object:
    """What is no word is left to the check of numbers."""
    if not isinstance(said, str):
        return said
    if said not in PRIORITIES:
        raise ValueError(f"must be a number from 0 to 9 or a word; {did_you_mean(said, PRIORITIES)}")
    return PRIORITIES[said]
