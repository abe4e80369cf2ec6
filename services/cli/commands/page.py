"""`windlass open`: the page, signed in."""

import argparse
import os
import sys
import webbrowser
from urllib.parse import urlsplit

from windlass.client import calls
from windlass.services.cli.commands.arguments import Commands
from windlass.services.cli.display.tables import Facts
from windlass.services.cli.session import Session


def add_commands(commands: Commands) -> None:
    parser = commands.add(
        "open", open_page, "make a link that signs in once, and open the page with it", "windlass open"
    )
    parser.add_argument("--no-browser", action="store_true", help="only print the link")


def open_page(session: Session, arguments: argparse.Namespace) -> None:
    made = session.client.ask(calls.session_link())
    link = urlsplit(made["url"])
    # The browser is on this machine: it reaches the API where this command does.
    url = f"{session.url}{link.path}#{link.fragment}"
    session.screen.show({**made, "url": url}, Facts([("link", url), ("good for", "15 minutes, once")]))
    if not arguments.no_browser and has_browser():
        webbrowser.open(url)


def has_browser() -> bool:
    """One that opens a window: a browser in this terminal would take it away from whoever types here."""
    if sys.platform in {"darwin", "win32"} or "BROWSER" in os.environ:
        return True
    return any(name in os.environ for name in ("DISPLAY", "WAYLAND_DISPLAY"))
