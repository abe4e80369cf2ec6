"""One vocabulary for why a task does not run."""

import re

from hypothesis import given
from hypothesis import strategies as st

from windlass.shared.reasons import OF_WHY, SAID_OF_A_REFUSED_TASK, Reason
from windlass.shared.store import functions

CONTRACT = (
    "running", "finished", "waiting-for-time", "waiting-for-dependencies", "waiting-for-approval",
    "workflow-escalated", "key-limit",
    "broker-away", "broker-blocked", "provider-limit", "provider-paused", "rate-limited-until", "breaker-open",
    "no-worker", "behind-others", "about-to-start",
)  # fmt: skip
"""SPEC 3, by hand."""


def test_why_says_what_the_contract_names() -> None:
    assert OF_WHY == CONTRACT


def test_what_only_a_claim_is_told_is_mapped_to_what_why_says() -> None:
    assert {said for words in SAID_OF_A_REFUSED_TASK.values() for said in words} <= set(OF_WHY)


def refusals() -> set[str]:
    """Every word that the claim's SQL can answer."""
    texts = {path.name: path.read_text() for path in functions.files()}
    claim = texts["claim_tasks.sql"].partition("RETURN QUERY")[2].partition("t.payload")[0]
    bar = texts["provider_gates.sql"].partition("FUNCTION bar_of")[2].partition("END $$")[0]
    return set(re.findall(r"(?:THEN|,) '([\w-]+)'", claim + bar))


def test_sql_refuses_a_claim_in_these_words_only() -> None:
    assert len(refusals()) > 8
    assert refusals() <= {*Reason} - {Reason.OTHER}


def test_every_word_that_a_claim_alone_is_told_is_said_by_sql() -> None:
    assert {*SAID_OF_A_REFUSED_TASK} - {Reason.OTHER} <= refusals()


@given(st.text())
def test_a_newer_schema_may_refuse_in_words_that_nobody_knows_yet(word: str) -> None:
    assert Reason.of_refusal(word) == (word if word in {*Reason} else Reason.OTHER)
