"""Something like a summary, made from the text alone, so that a test recognises what was sent."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n{2,}")
MARKER = re.compile(r"^<[^<>\n]*>$", re.MULTILINE)
ENDS = (".", "!", "?")
NOTHING = ["There", "is", "nothing", "to", "summarise."]
MOST_SENTENCES = 5
MOST_WORDS = 60
LENGTH = re.compile(r"\bat most (\d+) words")
WISHES = "The reader's wishes for the summary: "
PART = "This is part "
LEAST_ECHO = 4
"""Fewer words than this say nothing of a wish."""

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


@dataclass(frozen=True)
class Wishes:
    """What a summary should be like, as the actor's own prompt has it."""

    most_words: int = MOST_WORDS
    instructions: str = ""


NONE = Wishes()


def wishes_in(messages: Iterable[tuple[str, str]]) -> Wishes:
    """The text itself wishes nothing: only what the system says counts. A part's summary is for no reader's eyes."""
    rules, _, instructions = "\n".join(text for role, text in messages if role == "system").partition(WISHES)
    length = LENGTH.search(rules)
    return Wishes(max(1, int(length[1])) if length else MOST_WORDS, "" if PART in rules else instructions)


def complete(asked: str, everything: str, most_tokens: int | None, wishes: Wishes = NONE) -> Completion:
    """For once a word is a token."""
    words = summarise(asked, wishes).split(" ")
    is_cut = most_tokens is not None and len(words) > most_tokens
    return Completion(" ".join(words[:most_tokens]), is_cut, len(everything.split()))


def summarise(text: str, wishes: Wishes = NONE) -> str:
    """The first whole sentences that are short enough; a wish is granted by saying that it was heard."""
    heard = _echo(wishes.instructions.split(), wishes.most_words // 2)
    room = wishes.most_words - len(heard)
    sentences = [each.split() for each in SENTENCE_END.split(MARKER.sub("", text)) if each.strip()]
    said: list[list[str]] = []
    for words in sentences:
        if len(words) <= room and len(said) < MOST_SENTENCES:
            said.append(words)
            room -= len(words)
    # Where none is short enough, the beginning of the first has to do.
    said = said or [words[:room] for words in sentences[:1]] or [NOTHING[:room]]
    return " ".join(_ended(words) for words in (*said, heard) if words)


def _echo(instructions: list[str], room: int) -> list[str]:
    wanted = ["As", "you", "wished:", *instructions]
    return wanted[:room] if instructions and room >= LEAST_ECHO else []


def _ended(words: list[str]) -> str:
    sentence = " ".join(words)
    return sentence if sentence.endswith(ENDS) else sentence.rstrip(",;:") + "."
