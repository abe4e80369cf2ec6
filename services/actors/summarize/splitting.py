"""Long text cut into parts that end where a reader would pause: pure, and nothing is lost or doubled."""

import math
import re
from collections.abc import Iterator

PAUSES = (
    re.compile(r"\n[^\S\n]*\n\s*"),
    re.compile(r"[.!?…][\"'”’»)\]]*\s++(?![a-z])|[。！？][”’」』）]*\s*|\n\s*"),  # noqa: RUF001 - sentences end so in Chinese
    re.compile(r"\s+"),
)
"""The ends of paragraphs, of sentences and lines, and of words, the better ones first."""


def split(text: str, limit: int) -> list[str]:
    """Parts of at most `limit` characters that give the text when they are joined, and are about equally long."""
    assert limit >= 1, "a part holds at least one character"
    return list(_parts(text, limit))


def _parts(text: str, limit: int) -> Iterator[str]:
    start = 0
    while len(text) - start > limit:
        end = _best_end(text, start, limit)
        yield text[start:end]
        start = end
    if start < len(text) or not text:
        yield text[start:]


def _best_end(text: str, start: int, limit: int) -> int:
    """Near the length that makes all parts alike: a last part of three words would be summarised out of context."""
    left = len(text) - start
    ideal = start + math.ceil(left / math.ceil(left / limit))
    least, most = start + (ideal - start + 1) // 2, start + limit
    for pause in PAUSES:
        ends = [found.end() for found in pause.finditer(text, least, most)]
        if ends:
            return min(ends, key=lambda end: abs(end - ideal))
    return ideal
