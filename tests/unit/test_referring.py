"""What a payload may refer to: what its task depends on, and nothing else."""

import pytest

from windlass.shared.submission.referring import Refers, find_references
from windlass.shared.submission.refusal import Refused

DRAFT = Refers(frozenset({"draft"}))


def test_what_the_task_depends_on_may_be_referred_to() -> None:
    (found,) = find_references({"content": {"$from": "draft", "path": "/text"}}, DRAFT, "summarize", "/payload")
    assert found.place == ("content",)


@pytest.mark.parametrize(
    ("payload", "actor", "pointer"),
    [
        ({"content": {"$from": "other"}}, "summarize", "/payload/content/$from"),
        ({"content": {"$text": ["a", {"$from": "other"}]}}, "summarize", "/payload/content/$text/1/$from"),
        ({"content": {"$item": True}}, "summarize", "/payload/content"),
        ({"outcome": {"$from": "draft"}}, "probe", "/payload/outcome"),
    ],
)
def test_anything_else_is_named_by_its_pointer(payload: dict[str, object], actor: str, pointer: str) -> None:
    with pytest.raises(Refused) as refused:
        find_references(payload, DRAFT, actor, "/payload")
    assert [each.pointer for each in refused.value.wrong] == [pointer]


def test_so_many_references_and_no_more() -> None:
    def payload(number: int) -> dict[str, object]:
        return {"content": [{"$from": "draft"}] * number}

    assert len(find_references(payload(2000), DRAFT, "summarize", "/payload")) == 2000
    with pytest.raises(Refused, match="has more than 2,000 references") as refused:
        find_references(payload(2001), DRAFT, "summarize", "/payload")
    assert [each.pointer for each in refused.value.wrong] == ["/payload"]
