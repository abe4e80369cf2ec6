"""Why something is not taken, in nobody's terms: the api makes a problem of it, a worker an error of the attempt."""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from windlass.shared.actors.new_task import DEPENDENCY, ID
from windlass.shared.retry_delays import TAGS
from windlass.shared.wording import NOT_KNOWN, did_you_mean, in_words, names_at

NOT_A_PLACE = {*TAGS, ID, DEPENDENCY}
"""What pydantic says of a choice between shapes, and stands nowhere in what was sent."""


class Wrong(NamedTuple):
    """One thing that is wrong, and where it stands, as a JSON pointer."""

    pointer: str
    detail: str


class Refused(ValueError):
    """A task that is not taken: a stable code, and what is wrong with it, all of it."""

    def __init__(self, code: str, wrong: Sequence[Wrong]) -> None:
        super().__init__("; ".join(f"{each.pointer or '/'}: {each.detail}" for each in wrong))
        self.code = code
        self.wrong = wrong


def refusal(pointer: str, code: str, detail: str) -> Refused:
    """For one thing alone."""
    return Refused(code, [Wrong(pointer, detail)])


def pointer_to(place: Iterable[int | str], below: str = "") -> str:
    return below + "".join(f"/{escape(part)}" for part in place)


def escape(part: int | str) -> str:
    return str(part).replace("~", "~0").replace("/", "~1")


def wrong_fields(
    error: ValidationError, model: type[BaseModel], *, below: str = "", beside: Collection[str] = ()
) -> list[Wrong]:
    """A failed check, field by field; `beside` are names that stand next to the model's own."""
    found = []
    for each in error.errors(include_url=False):
        place = [part for part in each["loc"] if part not in NOT_A_PLACE]
        found.append(Wrong(pointer_to(place, below), _said_of(each, place, model, beside)))
    return found


def _said_of(each: ErrorDetails, place: list[int | str], model: type[BaseModel], beside: Collection[str]) -> str:
    if each["type"] not in NOT_KNOWN:
        return in_words(each)
    known = [*names_at(model, place[:-1]), *(beside if len(place) == 1 else ())]
    return f"there is no such field; {did_you_mean(str(place[-1]), known)}"
