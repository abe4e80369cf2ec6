"""What a wrong name was probably meant to be, and which names there are."""

import difflib
import heapq
from collections.abc import Collection, Iterable

FEW = 20
"""So many names can be read in one line."""
LONGEST_WORD = 40
"""Comparing two words takes time that grows with the product of their lengths; a longer one gets no suggestion."""


def did_you_mean(word: str, known: Iterable[str], *, otherwise: str = "", prefix: str = "") -> str:
    """The most alike, or all of them where they are few; what all of them begin with says nothing about likeness."""
    names = sorted(known)
    if likely := likeliest(word, names, prefix):
        return f"did you mean `{likely}`?"
    if 0 < len(names) <= FEW or (names and not otherwise):
        return f"there are {', '.join(names)}"
    return otherwise or "there is none here"


def likeliest(word: str, known: Iterable[str], prefix: str = "") -> str | None:
    """The name that is most like this word, if any is, in upper or lower case."""
    names = {name.removeprefix(prefix).casefold(): name for name in known}
    close = closest(word.casefold().removeprefix(prefix.casefold()), names)
    return None if close is None else names[close]


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most like this one, if any is."""
    close = difflib.get_close_matches(word, known, n=1) if len(word) <= LONGEST_WORD else []
    return close[0] if close else None


def meant(word: str, known: Collection[str]) -> str:
    """The likeliest, and the first of those that there are. A client may have chosen all of them, as the keys of a
    workflow: only the few of nearly the same length are compared."""
    names = f"there are {listed(known)}" if known else "there is none here"
    near = heapq.nsmallest(FEW, known, key=lambda name: abs(len(name) - len(word)))
    likely = likeliest(word, near)
    return f"did you mean `{likely}`? {names}" if likely else names


def listed(names: Collection[str]) -> str:
    """The first few in alphabetical order, and how many more there are."""
    first = ", ".join(heapq.nsmallest(FEW, names))
    return f"{first} and {len(names) - FEW:,} more" if len(names) > FEW else first
