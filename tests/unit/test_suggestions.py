"""What an error suggests in place of a name that there is not."""

import pytest

from windlass.shared.suggestions import meant

MANY = [f"actor-{number:02}" for number in range(25)]
FIRST_TWENTY = ", ".join(MANY[:20])


@pytest.mark.parametrize(
    ("word", "known", "said"),
    [
        ("sumarize", ["probe", "summarize"], "did you mean `summarize`? there are probe, summarize"),
        ("nothing", ["probe", "media"], "there are media, probe"),
        ("nothing", MANY, f"there are {FIRST_TWENTY} and 5 more"),
        ("Actor-07", MANY, f"did you mean `actor-07`? there are {FIRST_TWENTY} and 5 more"),
        ("nothing", [], "there is none here"),
    ],
)
def test_the_names_are_listed_once(word: str, known: list[str], said: str) -> None:
    assert meant(word, known) == said
