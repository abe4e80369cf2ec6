"""What the fake model says about a text."""

from windlass.services.fake_providers.summary import complete, summarise

TEXT = "The windlass hauls a heavy load while its pawl holds it. It never slips! Why should it?\nSailors know."


def test_a_summary_is_made_of_the_beginnings_of_sentences() -> None:
    said = "The windlass hauls a heavy load while its. It never slips. Why should it. Sailors know."
    assert summarise(TEXT) == said
    assert summarise("") == "There is nothing to summarise."


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
