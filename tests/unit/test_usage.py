"""What work has cost: figures that can be right are added up, the others are left out."""

import math
from typing import Any

import pytest

from windlass.shared.usage import MOST, added, figures_in


def test_the_three_figures_are_taken_and_what_is_null_was_not_said() -> None:
    said = {"cost_usd": 0.25, "prompt_tokens": 12, "completion_tokens": None}
    assert figures_in(said) == ({"cost_usd": 0.25, "prompt_tokens": 12}, [])


@pytest.mark.parametrize(
    "wrong",
    [
        {"cost_usd": -1},
        {"cost_usd": "0.1"},
        {"cost_usd": math.nan},
        {"cost_usd": math.inf},
        {"cost_usd": MOST + 1},
        {"cost_usd": [1]},
        {"prompt_tokens": True},
        {"prompt_tokens": 1.5},
        {"completion_tokens": -3},
        {"tokens": 4},
    ],
)
def test_what_cannot_be_right_is_named_and_left_out(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    good, (fault,) = figures_in({"prompt_tokens": 1, **wrong})
    assert good == ({} if name == "prompt_tokens" else {"prompt_tokens": 1})
    assert name in fault


def test_costs_are_added_as_decimals() -> None:
    assert added({"cost_usd": 0.1, "prompt_tokens": 1}, {"cost_usd": 0.2}) == {"cost_usd": 0.3, "prompt_tokens": 1}
    assert added({}, {}) == {}
