"""Where answers go: one JSON document if that was asked for, else a table or plain text."""

import sys
from typing import Any

import msgspec
from rich.console import Console

from windlass.services.cli.display.tables import Facts, Table


class Screen:
    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.console = Console(highlight=False, markup=False, emoji=False)

    @property
    def is_terminal(self) -> bool:
        return self.console.is_terminal and not self.console.is_dumb_terminal

    def show(self, document: Any, view: Table | Facts) -> None:
        """The answer as the API gave it, or the view of it."""
        if self.as_json:
            self.document(document)
            return
        if isinstance(view, Table) and not view.rows:
            self.remark(view.empty)
            return
        if self.is_terminal:
            view.draw(self.console)
        else:
            sys.stdout.write(view.plain())
        if isinstance(view, Table) and view.note:
            self.remark(view.note)

    def document(self, document: Any) -> None:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n")

    def line(self, text: str) -> None:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    def text(self, text: str) -> None:
        """As it is, with its own ends of lines."""
        sys.stdout.write(text)

    def json_line(self, document: Any) -> None:
        self.line(msgspec.json.encode(document).decode())

    def remark(self, text: str) -> None:
        """Beside the answer, never in it."""
        sys.stdout.flush()
        print(text, file=sys.stderr, flush=True)
