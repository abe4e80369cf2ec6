"""Vectors without a model: a signed feature hash of words and trigrams. It finds the same words again, and what is
spelt alike; it knows nothing of meaning."""

import math
import re
from hashlib import blake2b

HASH_MODEL = "hash-256"
HASH_PROVIDER = "hash"
DIMENSIONS = 256
WORD = re.compile(r"\w+")
WEIGHT_OF_A_TRIGRAM = 0.3
"""A word has about as many of them as letters: together they count about as much as the word itself."""


def hashed(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """Of unit length. Words that come again count less each time, as a long text would drown out a short one."""
    counts: dict[str, float] = {}
    for word in WORD.findall(text.casefold()):
        counts[word] = counts.get(word, 0) + 1
        marked = f"^{word}$"
        for place in range(len(marked) - 2):
            part = f"3{marked[place : place + 3]}"
            counts[part] = counts.get(part, 0) + WEIGHT_OF_A_TRIGRAM
    vector = [0.0] * dimensions
    for feature, count in counts.items():
        digest = int.from_bytes(blake2b(feature.encode(), digest_size=8).digest(), "big")
        vector[(digest >> 1) % dimensions] += (1 if digest & 1 else -1) * math.log1p(count)
    return unit(vector)


def unit(vector: list[float]) -> list[float]:
    """The same direction, of length one; nothing stays nothing."""
    length = math.sqrt(sum(part * part for part in vector))
    return [part / length for part in vector] if length > 0 else vector
