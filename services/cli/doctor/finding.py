"""One thing that was looked at, how it is, and what to do about it."""

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "note", "bad"]


@dataclass(frozen=True)
class Finding:
    """`note` is worth knowing and stops nobody; `bad` has to be mended, and makes the exit code 1."""

    name: str
    state: State
    detail: str
    remedy: str = ""


def ok(name: str, detail: str) -> Finding:
    return Finding(name, "ok", detail)


def note(name: str, detail: str, remedy: str) -> Finding:
    return Finding(name, "note", detail, remedy)


def bad(name: str, detail: str, remedy: str) -> Finding:
    return Finding(name, "bad", detail, remedy)
