"""What Postgres was asked, by whom and how often, as its own log of every statement tells."""

import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.servers.databases import ask, execute

PREFIX = "%a~"
STATEMENT = re.compile(r"\| (?P<application>[^~| ]*)[^~|]*~LOG:  (?:execute [^:]*|statement): ?(?P<statement>.*)")
SET = re.compile(r"\bwindlass_[0-9a-f]{12}\.")
"""A build's own functions: the same statement in a report of another build, too."""
CONTINUED = re.compile(r"\| \t(?P<more>.*)")


@dataclass(frozen=True)
class Asked:
    """One statement of one connection; `application` is the name that it gave itself, without its functions'."""

    application: str
    statement: str


def statements(lines: Iterator[str]) -> Iterator[Asked]:
    """Those in the log, each put together from its lines, with all white space made one blank."""
    application, words = "", [""]
    for line in lines:
        if more := CONTINUED.search(line):
            words.append(more["more"])
            continue
        if application:
            yield Asked(application, _in_one_line(words))
        begun = STATEMENT.search(line)
        application, words = (begun["application"], [begun["statement"]]) if begun else ("", [])
    if application:
        yield Asked(application, _in_one_line(words))


def _in_one_line(words: list[str]) -> str:
    return SET.sub("", " ".join(" ".join(words).split()))


@contextmanager
def everything_logged(url: str) -> Iterator[None]:
    """Also for connections that are there already."""
    for setting in (f"log_line_prefix = '{PREFIX}'", "log_statement = 'all'"):
        execute(url, f"ALTER SYSTEM SET {setting}")
    ask(url, "SELECT pg_reload_conf()")
    try:
        yield
    finally:
        execute(url, "ALTER SYSTEM RESET ALL")
        ask(url, "SELECT pg_reload_conf()")


def asked_within(seconds: float, url: str, log: Path) -> Counter[Asked]:
    """What all connections asked while so many seconds went by."""
    with everything_logged(url):
        time.sleep(1)  # idle backends read the new setting before their next statement
        begin = log.stat().st_size
        time.sleep(seconds)
        with log.open(encoding="utf-8", errors="replace") as file:
            file.seek(begin)
            return Counter(statements(iter(file.read().splitlines())))
