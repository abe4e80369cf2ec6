"""What is wrong with a payload, by its schema alone: each field by its place, in words of our own."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.shared.actors.built_in import built_in
from windlass.shared.actors.definition import Definition
from windlass.shared.actors.payloads import PAYLOADS
from windlass.shared.actors.schemas import LARGEST_SCHEMA_BYTES, UnfitSchema, compiled
from windlass.shared.actors.versions import Version

ACTORS = {name: Version.of(each) for name, each in built_in().items()}


def version(**properties: Any) -> Version:
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return Version.of(Definition(name="own", payload_schema=schema))


def said(one: Version, payload: Any) -> dict[str, str]:
    return {"".join(f"/{part}" for part in fault.place): fault.detail for fault in one.faults_of(payload)}


SHAPE_X = {
    "properties": {"kind": {"const": "x"}, "n": {"type": "integer"}},
    "required": ["kind", "n"],
    "type": "object",
}
SHAPE_Y = {
    "properties": {"kind": {"const": "y"}},
    "required": ["kind"],
    "type": "object",
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("schema", "value", "place", "words"),
    [
        ({"type": "string"}, 1, "", "must be text in quotes"),
        ({"type": "integer"}, 1.5, "", "must be a whole number"),
        ({"type": "number"}, True, "", "must be a number"),
        ({"type": "boolean"}, "true", "", "must be true or false"),
        ({"type": "array"}, {}, "", "must be a list"),
        ({"type": "object"}, [], "", "must be an object"),
        ({"type": ["string", "integer"]}, [], "", "must be a whole number or text in quotes"),
        ({"minLength": 1}, "", "", "must have at least 1 character"),
        ({"maxLength": 2}, "abc", "", "must have at most 2 characters"),
        ({"minItems": 2}, [1], "", "must have at least 2 items"),
        ({"maxProperties": 1}, {"a": 1, "b": 2}, "", "must have at most 1 item"),
        ({"minimum": 1}, 0, "", "must be greater than or equal to 1"),
        ({"exclusiveMaximum": 1.5}, 2, "", "must be less than 1.5"),
        ({"multipleOf": 5}, 7, "", "must be a multiple of 5"),
        ({"pattern": "^[a-z]+$"}, "A", "", "must match the pattern ^[a-z]+$"),
        ({"format": "uuid"}, "x", "", "must be a UUID, like 01890a5d-ac96-774b-bcce-b302099a8057"),
        ({"format": "date-time"}, "x", "", "must be a time in ISO 8601 with its zone, like 2030-01-31T12:00:00Z"),
        ({"enum": ["red", "green"]}, "gren", "", "must be red or green; did you mean `green`?"),
        ({"const": "red"}, 7, "", "must be red"),
        ({"uniqueItems": True}, [1, 1], "", "must not hold the same item twice"),
        ({"items": {"type": "integer"}}, [1, "x"], "/1", "must be a whole number"),
        ({"anyOf": [{"type": "integer", "minimum": 3}, {"type": "null"}]}, 1, "", "must be greater than or equal to 3"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "1", "", "must be a whole number"),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, [], "", "must be a whole number or text in quotes"),
        ({"oneOf": [SHAPE_X, SHAPE_Y]}, {"kind": "x", "n": "1"}, "/n", "must be a whole number"),
        ({"oneOf": [SHAPE_X, SHAPE_Y]}, {"kind": "y", "z": 1}, "/z", "there is no such field; there are kind"),
        ({"not": {"type": "string"}}, "x", "", "is of a kind that is excluded here"),
        (
            {"propertyNames": {"maxLength": 2}},
            {"abc": 1},
            "",
            "has a name that is wrong: must have at most 2 characters",
        ),
        ({"contains": {"type": "integer"}}, ["a"], "", "does not hold an item that has to be in it"),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, "/b", "must be given"),
    ],
)
def test_it_is_said_in_our_own_words(schema: dict[str, Any], value: Any, place: str, words: str) -> None:
    assert said(version(it=schema), {"it": value}) == {f"/it{place}": words}


def test_an_unknown_field_is_told_with_the_one_that_was_meant_also_deep_inside() -> None:
    assert said(ACTORS["agent"], {"subagent_type": "a", "prompt": "p", "limits": {"memory_bm": 1}, "promt": "p"}) == {
        "/limits/memory_bm": "there is no such field; did you mean `memory_mb`?",
        "/promt": "there is no such field; did you mean `prompt`?",
    }


def test_of_many_words_the_one_that_was_meant_is_enough() -> None:
    (words,) = said(ACTORS["probe"], {"error_type": "TimedOutt"}).values()
    assert words.endswith("words that may stand here; did you mean `TimedOut`?")


@pytest.mark.parametrize(
    "schema", [{"type": "integer"}, {"pattern": "^x$"}, {"enum": ["x"]}, {"not": {}}, {"maxLength": 1}, {"const": 1}]
)
def test_a_value_is_never_repeated(schema: dict[str, Any]) -> None:
    secret = "sk-" + "s3cret" * 9
    assert secret not in str(said(version(it=schema), {"it": secret}))


values = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 12000), st.floats(-1, 100), st.text("ab", max_size=3), st.just("demo"),
    st.lists(st.integers(), max_size=1), st.dictionaries(st.sampled_from(["memory_mb", "x"]), st.integers(0, 3)),
)  # fmt: skip


documents = st.sampled_from(sorted(PAYLOADS)).flatmap(
    lambda actor: st.tuples(
        st.just(actor),
        st.dictionaries(st.sampled_from([*PAYLOADS[actor].model_fields, "surprise"]), values, max_size=4),
    )
)


@given(documents)
def test_whatever_the_schema_takes_its_actor_can_read_but_for_what_no_schema_can_say(
    said_to: tuple[str, dict[str, Any]],
) -> None:
    actor, chosen = said_to
    example = ACTORS[actor].definition.payload_schema["examples"][0]
    document = {**example, **chosen}
    if actor == "media":
        document["action"] = "txt2img"
        document["source_image"] = None
    faults = ACTORS[actor].faults_of(document)
    assert bool(faults) is not ACTORS[actor].takes(document)
    assert all(fault.detail and fault.place for fault in faults)
    if not faults:
        PAYLOADS[actor].model_validate(document)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"$ref": "https://example.org/schema.json"}, "nothing is fetched"),
        ({"$ref": "file:///etc/passwd"}, "nothing is fetched"),
        ({"pattern": "^(?=a)b"}, "without look-around"),
        ({"pattern": r"(a)\1"}, "without look-around"),
        ({"type": "text"}, "cannot be used"),
        ({"description": "x" * LARGEST_SCHEMA_BYTES}, "65,536 are the most"),
    ],
)
def test_a_schema_that_could_do_harm_is_not_used(schema: dict[str, Any], words: str) -> None:
    with pytest.raises(UnfitSchema, match=words):
        compiled({"type": "object", "properties": {"it": schema}})


def test_a_pattern_takes_no_longer_than_the_text_is_long() -> None:
    assert said(version(it={"pattern": "^(a+)+$"}), {"it": "a" * 100_000 + "!"}).keys() == {"/it"}
