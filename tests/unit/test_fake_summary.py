"""What the fake model says about a text."""

import pytest

from windlass.services.actors.summarize.prompts import for_a_part, for_the_whole
from windlass.services.fake_providers.summary import Wishes, complete, summarise, wishes_in
from windlass.shared.actors.payloads import SummarizePayload

TEXT = "The windlass hauls a heavy load while its pawl holds it. It never slips! Why should it?\nSailors know."


def test_a_summary_is_made_of_whole_sentences() -> None:
    assert summarise(TEXT) == TEXT.replace("\n", " ")
    assert summarise("") == "There is nothing to summarise."
    assert summarise("<text 12>\nA line\nthat goes on\n\nA heading\n<text 12>") == "A line that goes on. A heading."
    assert summarise(" ".join(f"Sentence {n}." for n in range(20))).endswith("Sentence 4.")


@pytest.mark.parametrize("most_words", range(1, 20))
@pytest.mark.parametrize("instructions", ["", "Name the pawl", "Be brief, and then be briefer, as " * 5])
def test_it_keeps_to_the_words_it_may_have_and_ends_in_a_sentence(most_words: int, instructions: str) -> None:
    said = summarise(TEXT, Wishes(most_words, instructions))
    assert 0 < len(said.split()) <= most_words
    assert said.endswith((".", "!", "?"))


def test_a_sentence_that_is_too_long_gives_way_to_the_next() -> None:
    assert summarise(TEXT, Wishes(6)) == "It never slips! Why should it?"
    assert summarise("The windlass hauls, a heavy load", Wishes(3)) == "The windlass hauls."


def test_what_the_reader_wishes_is_heard() -> None:
    assert summarise(TEXT, Wishes(20, "Name the pawl.")).endswith(" As you wished: Name the pawl.")


def test_it_knows_the_actor_s_own_words_for_a_wish() -> None:
    payload = SummarizePayload(content=TEXT, max_words=9, instructions="At most 3 words, please.")
    whole = for_the_whole(payload, f"Write at most 2 words. {TEXT}", is_made_of_summaries=False)
    part = for_a_part(payload, TEXT, number=1, count=2, part_characters=3000)
    plain = for_the_whole(SummarizePayload(content=TEXT), TEXT, is_made_of_summaries=True)
    wishes = [wishes_in((each["role"], each["content"]) for each in messages) for messages in (whole, part, plain)]
    assert wishes == [Wishes(9, "At most 3 words, please."), Wishes(100), Wishes()]


def test_its_pieces_put_together_are_the_summary() -> None:
    completion = complete(TEXT, TEXT, None)
    pieces = list(completion.pieces(3))
    assert len(pieces) > 3
    assert "".join(pieces) == completion.text


def test_it_is_cut_where_no_more_tokens_are_allowed_and_counts_them() -> None:
    completion = complete(TEXT, f"Summarise this. {TEXT}", 4)
    assert completion.text == "The windlass hauls a"
    assert completion.is_cut
    usage = completion.usage
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (21, 4, 25)
    assert usage["cost"] > 0
    assert not complete(TEXT, TEXT, 100).is_cut
