"""The base of everything that a request is checked against."""

from typing import Any

from pydantic import BaseModel, BeforeValidator, model_validator
from pydantic_core import PydanticCustomError

MOST_FIELDS = 1000
"""A client that sends more made no typing error, and naming each as unknown would take long."""


def refuse_many_fields(value: Any) -> Any:
    if isinstance(value, dict) and len(value) > MOST_FIELDS:
        raise PydanticCustomError(
            "too_many_fields", "has {count} fields; more than {most} are not examined",
            {"count": f"{len(value):,}", "most": f"{MOST_FIELDS:,}"},
        )  # fmt: skip
    return value


def at_most(number: int) -> BeforeValidator:
    """A list with more items is refused before each of them is looked at."""

    def check(value: Any) -> Any:
        if isinstance(value, list | tuple) and len(value) > number:
            raise PydanticCustomError(
                "too_many_items", "must have at most {most} items, not {count}",
                {"count": f"{len(value):,}", "most": f"{number:,}"},
            )  # fmt: skip
        return value

    return BeforeValidator(check)


class Form(BaseModel):
    """Counts the fields before it looks at any."""

    @model_validator(mode="before")
    @classmethod
    def _has_few_fields(cls, value: Any) -> Any:
        return refuse_many_fields(value)
