"""The versions of an actor that run side by side: what all of them take is accepted, and who refuses is named."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from windlass.shared.actors.definition import Definition
from windlass.shared.actors.faults import Fault, faults_of
from windlass.shared.actors.schemas import Validator, compiled
from windlass.shared.errors import InvalidInput


@dataclass(frozen=True, eq=False)
class Version:
    """A definition that payloads can be checked by, compiled once."""

    name: str
    definition: Definition
    validator: Validator = field(repr=False)

    @classmethod
    def of(cls, definition: Definition, name: str | None = None) -> "Version":
        """Raises UnfitSchema. A row's own name for it goes before what this build would call it."""
        return cls(name or definition.version, definition, compiled(definition.payload_schema))

    def takes(self, payload: Any) -> bool:
        return self.validator.is_valid(payload)

    def faults_of(self, payload: Any, beside: Collection[str] = ()) -> list[Fault]:
        return faults_of(self.validator, self.definition.payload_schema, payload, beside)


def faults_by_any(versions: Sequence[Version], payload: Any, beside: Collection[str] = ()) -> list[Fault]:
    """What is wrong with a payload by any of them: none where all of them take it. What only some refuse is said with
    the version's name, for whoever reads the newest schema finds nothing wrong there."""
    refusing = [each for each in versions if not each.takes(payload)]
    if not refusing:
        return []
    said = {each.name: each.faults_of(payload, beside) for each in refusing}
    by_all = set.intersection(*map(set, said.values()))
    common = [fault for fault in said[refusing[0].name] if fault in by_all]
    if len(refusing) == len(versions) and (common or len(versions) == 1):
        return common
    others = [each.name for each in versions if each not in refusing]
    taken = f"; {_listed(others)} would take it" if others else ""
    return [
        Fault(fault.place, f"{fault.detail} (says version {name}, which still runs{taken})")
        for name, faults in said.items()
        for fault in faults
    ]


class Sibling(NamedTuple):
    """Another version than the one that claimed a task."""

    name: str
    lives: bool
    takes: bool


def after_a_refusal(
    actor: str, own: str, why: str, siblings: Iterable[Sibling], *, pointer: str = ""
) -> InvalidInput | None:
    """What becomes of a task that was accepted, and that the version which claimed it refuses, at this place. None: it
    is handed back, free, for a version lives that takes it. Else it can only be buried, and both are named."""
    taking = [each for each in siblings if each.takes and each.name != own]
    if any(each.lives for each in taking):
        return None
    refusal = f"version {own} of {actor}, which claimed the task, does not take its payload: {why}"
    if not taking:
        return InvalidInput(f"{refusal}; no other version that is known takes it", pointer=pointer)
    names = _listed([each.name for each in taking])
    return InvalidInput(f"{refusal}; {names} would take it, and no worker runs that any more", pointer=pointer)


def _listed(names: Sequence[str]) -> str:
    return f"version{'s' if len(names) > 1 else ''} {', '.join(names)}"
