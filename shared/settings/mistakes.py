"""What is wrong with the settings, one line for each mistake: where it stands, and what would be right."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from windlass.shared.settings.variables import NOT_SETTINGS, PREFIX, TESTS
from windlass.shared.suggestions import did_you_mean
from windlass.shared.wording import names_at

FROM_KUBERNETES = re.compile(r"_SERVICE_(HOST|PORT)(_\w+)?$|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$")
"""Put into every container beside a Service whose name begins so, unless `enableServiceLinks` is false."""

ALL_OF_THEM = "docs/settings.md has them all"


class Reader:
    """Tells where a mistake stands: in a variable, or in which table and key of the file."""

    def __init__(self, model: type[BaseModel], environment: Mapping[str, str], file: Path | None, tables: Any) -> None:
        self._model = model
        self._variables = {name.upper() for name in environment}
        self._file = file
        self._tables = tables

    def line(self, problem: ErrorDetails) -> str:
        place = [part for part in problem["loc"] if not str(part).startswith("(")]
        if not place:
            return _in_words(problem)
        if problem["type"] == "extra_forbidden":
            meant = did_you_mean(str(place[-1]), names_at(self._model, place[:-1]), otherwise=ALL_OF_THEM)
            said = f"there is no such {_kind(place, self._tables)}; {meant}"
        else:
            said = _in_words(problem)
        return f"{self._where(place)}: {said}"

    def _where(self, place: list[int | str]) -> str:
        variable = f"{PREFIX}{place[0]}".upper()
        in_file = _holds(self._tables, place) or (len(place) > 1 and _holds(self._tables, place[:-1]))
        if variable in self._variables and (len(place) == 1 or not in_file):
            return ": ".join([variable, *([_dotted(place[1:])] if place[1:] else [])])
        return f"{self._file}: {self._named(place)}" if in_file else self._named(place)

    def _named(self, place: list[int | str]) -> str:
        if isinstance(_value_at(self._tables, place), dict):
            return f"[{_dotted(place)}]"
        last = next(number for number in range(len(place), 0, -1) if isinstance(place[number - 1], str))
        table, key = _dotted(place[: last - 1]), _dotted(place[last - 1 :])
        return f"[{table}] {key}" if table else key


def unknown_variables(environment: Mapping[str, str], settings: Iterable[str]) -> list[str]:
    """A line for each variable that looks like a setting of ours and is none."""
    known = {*(f"{PREFIX}{name}".upper() for name in settings), *NOT_SETTINGS}
    return [
        f"{name}: there is no such setting; {did_you_mean(name, known, otherwise=ALL_OF_THEM, prefix=PREFIX)}"
        for name, value in sorted(environment.items())
        if name.upper().startswith(PREFIX)
        and name.upper() not in known
        and not name.startswith(TESTS)
        and not (FROM_KUBERNETES.search(name) or value.startswith(("tcp://", "udp://", "sctp://")))
    ]


def lines_of(error: ValidationError, reader: Reader) -> list[str]:
    problems = error.errors(include_url=False, include_input=False)
    return list(dict.fromkeys(reader.line(problem) for problem in problems))


def _kind(place: list[int | str], tables: Any) -> str:
    return "table" if isinstance(_value_at(tables, place), dict) else "key"


def _in_words(problem: ErrorDetails) -> str:
    if problem["type"] == "missing":
        return "must be given"
    if problem["type"] in {"model_type", "dict_type"}:
        return "must be a table"
    said = problem["msg"].removeprefix("Value error, ")
    return re.sub("^Input should", "must", said).replace("must be a valid tuple", "must be a list")


def _dotted(place: list[int | str]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")


def _value_at(tables: Any, place: list[int | str]) -> Any:
    for part in place:
        try:
            tables = tables[part]
        except (KeyError, IndexError, TypeError):
            return None
    return tables


def _holds(tables: Any, place: list[int | str]) -> bool:
    return _value_at(tables, place) is not None
