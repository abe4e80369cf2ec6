"""Text that has to have a shape is refused in words, and described by its pattern."""

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from windlass.services.api.schedules.schemas import NewSchedule
from windlass.shared.submission.graphs import ForEach, Node
from windlass.shared.submission.refusal import wrong_fields


@pytest.mark.parametrize(
    ("model", "said", "pointer", "words"),
    [
        (NewSchedule, {"name": "-nightly"}, "/name", "must begin with a letter or a digit"),
        (
            NewSchedule,
            {"target": {"project": {"project_id": "7"}}},
            "/target/project/project_id",
            "must be a UUID, like",
        ),
        (Node, {"key": "pages[3]"}, "/key", "must have 1 to 100 letters"),
        (Node, {"key": "pages\n"}, "/key", "must have 1 to 100 letters"),
        (ForEach, {"$from": "split", "path": "parts"}, "/path", "must be a JSON pointer"),
    ],
)
def test_the_refusal_has_words_and_no_pattern(
    model: type[BaseModel], said: dict[str, Any], pointer: str, words: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(said)
    wrong = {each.pointer: each.detail for each in wrong_fields(caught.value, model)}
    assert wrong[pointer].startswith(words)
    assert "[A-Za-z" not in str(wrong)


def test_the_document_has_the_pattern() -> None:
    assert Node.model_json_schema()["properties"]["key"]["pattern"] == "^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,99}$"
