"""The words that the fake providers know."""

import re

import pytest

from windlass.services.fake_providers import behaviour
from windlass.services.fake_providers.behaviour import VALUES, Behaviour, NotAWord, Word, without_words, words_in


def test_words_in_a_prompt_are_found_and_taken_out() -> None:
    prompt = "a cat [[429=5]] on a mat [[poll:503 x2]]"
    assert list(words_in(prompt)) == [Word("order", "429", "5", None), Word("poll", "503", "", 2)]
    assert without_words(prompt) == "a cat on a mat"


@pytest.mark.parametrize(
    "text", ["[[Wikipedia]]", "[[fail=often]]", "[[delay]]", "[[hang=3]]", "[[dance:500]]", "[[200]]"]
)
def test_what_is_no_word_of_theirs_is_somebodys_text(text: str) -> None:
    assert list(words_in(text)) == []
    with pytest.raises(NotAWord):
        Word.parse(text.strip("[]"))


def test_a_word_that_is_written_down_reads_as_itself() -> None:
    for text in ("redirect=http://169.254.169.254/latest?a=b", "file:hang", "429", "503=1.5"):
        assert Word.parse(str(Word.parse(text))) == Word.parse(text)


def test_the_table_lists_every_word_and_no_other() -> None:
    rows = re.findall(r"^\| (`.*?) \|", behaviour.__doc__ or "", re.MULTILINE)
    listed = {word.partition("=")[0] for row in rows for word in re.findall(r"`([^`]+)`", row)}
    assert listed == {*VALUES, "NNN"}


def test_a_status_may_say_when_to_come_back() -> None:
    assert (Behaviour({"429": "5"}).status, Behaviour({"429": "5"}).retry_after) == (429, "5")
    assert (Behaviour({"503": ""}).status, Behaviour({"503": ""}).retry_after) == (503, None)
    assert (Behaviour({"fail": ""}).status, Behaviour({}).retry_after) == (None, None)
