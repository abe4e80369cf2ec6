"""One run of a command that speaks to the API: opens the client, and turns what goes wrong into words and a code."""

import argparse
import contextlib
import io
import math
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, Final, TypeVar

from windlass import ApiError, Client, WindlassError
from windlass.client.call import Call
from windlass.client.target import Target
from windlass.client.task import Listing
from windlass.services.cli import exit_codes
from windlass.services.cli.connection import Connection, choose_connection
from windlass.services.cli.display.screen import Screen
from windlass.services.cli.display.tables import Facts, Table
from windlass.services.cli.display.texts import clean
from windlass.services.cli.download import TIMEOUT_SECONDS, Download, download
from windlass.services.cli.references import resolve

PATIENCE_SECONDS: Final = 3.0
WAIT_PATIENCE_SECONDS: Final = 600.0
PAGE: Final = 500

T = TypeVar("T")
Command = Callable[["Session", argparse.Namespace], int | None]


class Session:
    """What a command works with; clients are closed when it ends."""

    def __init__(self, connection: Connection, screen: Screen, patience: float, closing: contextlib.ExitStack) -> None:
        self._connection = connection
        self._closing = closing
        self._patience = patience
        self.screen = screen
        self.client = self._open(patience)

    @property
    def url(self) -> str:
        """Where the API is, as this command reaches it."""
        return self._connection.url.rstrip("/")

    def waiting_client(self) -> Client:
        """For waiting: an API that is started anew must not end it."""
        return self._open(max(WAIT_PATIENCE_SECONDS, self._patience))

    def watching_client(self) -> Client:
        """For watching: somebody looks on and is told, so it goes on for as long as they like."""
        return self._open(math.inf)

    def impatient_client(self) -> Client:
        """For whoever asks again in a moment anyway."""
        return self._open(0.0)

    def show(self, call: Call[T], view: Callable[[T], Table | Facts]) -> T:
        """Asks, and shows the answer."""
        document = self.client.ask(call)
        answer = call.read(document)
        self.screen.show(document, view(answer))
        return answer

    def ask_pages(self, call: Call[Listing[T]], most: float = math.inf) -> Any:
        """The pages of a list as one document, up to so many items."""
        items: list[Any] = []
        answer: dict[str, Any] = {}
        while (left := most - len(items)) > 0:
            answer = self.client.ask(call.with_params(limit=int(min(left, PAGE))))
            items += answer["items"]
            if answer.get("next_cursor") is None:
                break
            call = call.with_params(**{call.cursor: answer["next_cursor"]})
        return {**answer, "items": items}

    def ask_each(self, ids: Iterable[str], call: Callable[[str], Call[T]], word: Callable[[T], str]) -> int:
        """One after the other; what fails does not keep the rest from being done. The first failure's code is told."""
        documents: list[Any] = []
        codes: list[int] = []
        for each in ids:
            asked = call(each)
            try:
                documents.append(self.client.ask(asked))
            except WindlassError as error:
                complain(error, about=each)
                codes.append(exit_codes.exit_code(error))
            else:
                if not self.screen.as_json:
                    self.screen.line(f"{each}\t{word(asked.read(documents[-1]))}")
        if self.screen.as_json:
            self.screen.document({"items": documents})
        return codes[0] if codes else exit_codes.DONE

    def download(self, path: str) -> AbstractContextManager[Download]:
        """A file of the API's, which no document is."""
        return download(Target.choose(self._connection.url, self._connection.key, TIMEOUT_SECONDS), path)

    def _open(self, patience: float) -> Client:
        return self._closing.enter_context(Client(self._connection.url, self._connection.key, patience=patience))


def run(command: Command, arguments: argparse.Namespace) -> int:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal of another alphabet is no reason to fail
    given: dict[str, Any] = vars(arguments)
    screen = Screen(as_json=given.get("output") == "json")
    try:
        with contextlib.ExitStack() as closing:
            connection = choose_connection(given.get("url"), given.get("key"))
            session = Session(connection, screen, given.get("patience", PATIENCE_SECONDS), closing)
            resolve(arguments, session.client.ask)
            code = command(session, arguments)
        sys.stdout.flush()
    except WindlassError as error:
        complain(error)
        return exit_codes.exit_code(error)
    except BrokenPipeError:
        # Whoever read our output has seen enough; Python's own flush at exit must not trip over it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exit_codes.PIPE_CLOSED
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED
    return code or exit_codes.DONE


def complain(error: WindlassError, about: str = "") -> None:
    """Prints the error, with its fields unless its own text names them already."""
    subject = f"windlass: {about}: " if about and about not in str(error) else "windlass: "
    if not isinstance(error, ApiError):
        print(f"{subject}{error}", file=sys.stderr)
        return
    is_told = error.repeats_its_fields
    detail = f"{len(error.errors)} fields are wrong" if is_told and len(error.errors) > 1 else clean(error.detail)
    print(f"{subject}{detail} [{error.code}]", file=sys.stderr)
    for field in error.errors if len(error.errors) > 1 or not is_told else ():
        print(f"  {clean(field.pointer) or '/'}: {clean(field.detail)}", file=sys.stderr)
    if error.code == "not-found" or error.status >= 500:
        for note in (*getattr(error, "__notes__", ()), *([f"request {error.request_id}"] * bool(error.request_id))):
            print(f"  {note}", file=sys.stderr)
