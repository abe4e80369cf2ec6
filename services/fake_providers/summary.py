"""Something like a summary, made from the text alone, so that a test recognises what was sent."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
MARKER = re.compile(r"<[^<>]*>")
MOST_SENTENCES = 5
WORDS_OF_A_SENTENCE = 8
PROMPT_PRICE = 0.15e-6
COMPLETION_PRICE = 0.6e-6


@dataclass(frozen=True)
class Completion:
    """What is said, and whether it had to be cut."""

    text: str
    is_cut: bool
    prompt_tokens: int

    @property
    def usage(self) -> dict[str, Any]:
        completion_tokens = len(self.text.split())
        cost = self.prompt_tokens * PROMPT_PRICE + completion_tokens * COMPLETION_PRICE
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": self.prompt_tokens + completion_tokens,
            "cost": round(cost, 10),
        }

    def pieces(self, words: int) -> Iterator[str]:
        """The text in parts that, put together, are the text."""
        parts = re.findall(rf"(?:\S+\s*){{1,{words}}}", self.text)
        yield from parts


def complete(asked: str, everything: str, most_tokens: int | None) -> Completion:
    """For once a word is a token."""
    words = summarise(asked).split(" ")
    is_cut = most_tokens is not None and len(words) > most_tokens
    return Completion(" ".join(words[:most_tokens]), is_cut, len(everything.split()))


def summarise(text: str) -> str:
    """The first words of the first sentences; a line that only marks where the text begins or ends is none."""
    lines = [line.strip() for line in SENTENCE_END.split(text)]
    sentences = [line.split() for line in lines if line and not MARKER.fullmatch(line)]
    shortened = [" ".join(words[:WORDS_OF_A_SENTENCE]).rstrip(".!?,;:") for words in sentences[:MOST_SENTENCES]]
    return ". ".join(shortened) + "." if shortened else "There is nothing to summarise."
