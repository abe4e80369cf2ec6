"""Names of stored files, `{generation_id}/{attempt}-{index}.png`: nothing that could lead out of the storage."""

import re

LONGEST = 500
_PART = r"[0-9A-Za-z_][0-9A-Za-z_.-]{0,199}"
_PLACE = re.compile(rf"{_PART}(?:/{_PART})*")


def is_place(name: str) -> bool:
    """Plain letters only, and no part begins with a dot: neither `..` nor the storage's own files are places."""
    return len(name) <= LONGEST and _PLACE.fullmatch(name) is not None


def checked(name: str) -> str:
    if not is_place(name):
        raise ValueError(f"{name[:80]!r} cannot be the name of a stored file")
    return name
