"""Why something is not taken, in nobody's terms: the api makes a problem of it, a worker an error of the attempt."""

from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from windlass.shared.actors.new_task import DEPENDENCY, ID
from windlass.shared.forms import MOST_FIELDS
from windlass.shared.retry_delays import TAGS
from windlass.shared.suggestions import did_you_mean
from windlass.shared.wording import NOT_KNOWN, in_words, names_at

NOT_A_PLACE = {*TAGS, ID, DEPENDENCY}
"""What pydantic says of a choice between shapes, and stands nowhere in what was sent."""

MOST_REPORTED = 20
"""Problems with one request that its answer names; finding and describing more would cost more than it helps."""
LONGEST_PART = 200
"""Characters of one name in a pointer: a client chooses them."""


class Wrong(NamedTuple):
    """One thing that is wrong, and where it stands, as a JSON pointer."""

    pointer: str
    detail: str


class Refused(ValueError):
    """A task that is not taken: a stable code, and the first things that are wrong with it. Those after
    `MOST_REPORTED` are never computed, so pass them as an iterator."""

    def __init__(self, code: str, wrong: Iterable[Wrong]) -> None:
        self.code = code
        self.wrong = list(islice(wrong, MOST_REPORTED))
        super().__init__("; ".join(f"{each.pointer or '/'}: {each.detail}" for each in self.wrong))


def refusal(pointer: str, code: str, detail: str) -> Refused:
    """For one thing alone."""
    return Refused(code, [Wrong(pointer, detail)])


def pointer_to(place: Iterable[int | str], below: str = "") -> str:
    return below + "".join(f"/{escape(part)}" for part in place)


def escape(part: int | str) -> str:
    return str(part)[:LONGEST_PART].replace("~", "~0").replace("/", "~1")


def wrong_fields(
    error: ValidationError, model: type[BaseModel], *, below: str = "", beside: Collection[str] = ()
) -> list[Wrong]:
    """A failed check, field by field, as far as it is reported; `beside` are names that stand next to the model's
    own."""
    if error.error_count() > MOST_FIELDS:
        return [
            Wrong(
                below,
                f"has {error.error_count():,} wrong or unknown fields; more than {MOST_FIELDS:,} are not examined",
            )
        ]
    return list(islice(_each_wrong(error, model, below, beside), MOST_REPORTED))


def _each_wrong(error: ValidationError, model: type[BaseModel], below: str, beside: Collection[str]) -> Iterator[Wrong]:
    for each in error.errors(include_url=False):
        place = [part for part in each["loc"] if part not in NOT_A_PLACE]
        yield Wrong(pointer_to(place, below), _said_of(each, place, model, beside))


def _said_of(each: ErrorDetails, place: list[int | str], model: type[BaseModel], beside: Collection[str]) -> str:
    if each["type"] not in NOT_KNOWN:
        return in_words(each)
    known = [*names_at(model, place[:-1]), *(beside if len(place) == 1 else ())]
    return f"there is no such field; {did_you_mean(str(place[-1]), known)}"
