"""`run.json`: what runs where, for people, tests and drills."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from windlass.services.laptop.kept_files import write_kept
from windlass.services.laptop.supervision.unit import Unit


class RunFile:
    """Replaced as a whole whenever a process number changes; private, since its URLs hold passwords."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._content: dict[str, Any] = {}
        self._entries: dict[str, dict[str, Any]] = {}

    def add(self, unit: Unit, *, kind: str | None = None, **facts: str) -> None:
        """Lists a unit of which there is one, under its own name unless its kind has another."""
        self._content[kind or unit.name] = self._entry(unit, **facts)

    def add_all(self, kind: str, units: Iterable[Unit]) -> None:
        """Lists units of which there may be several."""
        self._content[kind] = [self._entry(unit) for unit in units]

    def renew(self, unit: Unit) -> None:
        """Until it is ready, what is started again is listed with its old number."""
        self._entries[unit.name]["pid"] = unit.pid
        self.write()

    def write(self) -> None:
        write_kept(self._path, json.dumps(self._content, indent=2) + "\n")

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)

    def _entry(self, unit: Unit, **facts: str) -> dict[str, Any]:
        entry = self._entries[unit.name] = {"pid": unit.pid, **facts}
        return entry
