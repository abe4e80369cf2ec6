"""Which part of a file a request asks for, and whether its client has it already (RFC 9110)."""

import re

_RANGE = re.compile(r"bytes\s*+=\s*+(\d{0,18})\s*+-\s*+(\d{0,18})\s*+", re.ASCII | re.IGNORECASE)
"""Possessive, so that a long run of spaces is read once."""


class Unsatisfiable(Exception):
    """The file has no such bytes."""


def wanted_range(header: str | None, size: int) -> tuple[int, int] | None:
    """From which byte up to which (exclusive); none for the whole file.

    What cannot be understood is ignored, as the RFC demands, and so are several ranges at once, as it allows.
    """
    match = None if header is None else _RANGE.fullmatch(header)
    first, last = match.groups() if match else ("", "")
    if not first and not last:
        return None
    if not first:
        return _suffix(int(last), size)
    start, end = int(first), size if not last else min(int(last) + 1, size)
    if last and int(last) < start:
        return None
    if start >= size:
        raise Unsatisfiable
    return start, end


def _suffix(length: int, size: int) -> tuple[int, int]:
    if length == 0 or size == 0:
        raise Unsatisfiable
    return max(0, size - length), size


def is_named(etag: str, headers: list[str]) -> bool:
    """Whether `If-None-Match` names this file, or any at all; a weak tag is as good as a strong one here."""
    named = [each.strip().removeprefix("W/") for header in headers for each in header.split(",")]
    return etag in named or "*" in named


def still_applies(etag: str, if_range: str | None) -> bool:
    """Whether the part that a client asks for belongs to the file that it has begun with. Files have no date here."""
    return if_range is None or if_range.strip() == etag
