"""The books of a receiver of webhooks, which outlive it, and what it is told by the storm."""

import json
import threading
import time
from pathlib import Path
from typing import Any

UNVERIFIED = 401
"""What is answered to a delivery that nobody can verify."""


class Books:
    """One line for each request, also of those that were not verified. A line that a kill cut short harms no other."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._writing = threading.Lock()

    @property
    def path(self) -> Path:
        return self._directory / "books"

    def write(self, **entry: Any) -> None:
        with self._writing, self.path.open("ab", buffering=0) as books:
            books.write(f"\n{json.dumps({'at': time.time(), **entry})}".encode())

    def read(self) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        return [json.loads(line) for line in self.path.read_text().splitlines() if line.endswith("}")]

    # What it is told by the storm

    def share(self, path: str, secret: str) -> None:
        """From now on a delivery to this path may be signed with this secret, too."""
        known = self.secrets()
        known.setdefault(path, []).append(secret)
        draft = self._directory / "secrets.draft"
        draft.write_text(json.dumps(known))
        draft.rename(self._directory / "secrets")

    def secrets(self) -> dict[str, list[str]]:
        path = self._directory / "secrets"
        found: dict[str, list[str]] = json.loads(path.read_text()) if path.exists() else {}
        return found

    def mend(self) -> None:
        (self._directory / "mended").touch()

    @property
    def is_mended(self) -> bool:
        return (self._directory / "mended").exists()
