"""`@actor`: what it keeps of a function, what it makes of its annotations, and what it refuses."""

import asyncio
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from tests.support.blocked_packages import OF_THE_SERVER, run_without
from windlass import AsyncContext, Context, actor
from windlass.actors import Actor, Misdeclared
from windlass.actors.payload import Misfit, payload_of, result_schema_of

PLUG_IN = """
from windlass import Context, InvalidInput, RateLimited, actor
from windlass.actors.errors import NotFound, TaskError

@actor(throws=(ValueError,), timeout_seconds=600, concurrency={"key": "/text", "limit": 2})
def translate(text: str, to: str = "en", *, context: Context) -> str:
    return f"{text} in {to}"

assert translate("hi", to="de", context=None) == "hi in de"
assert issubclass(InvalidInput, TaskError)
print("imported")
"""


def test_a_plug_in_is_imported_without_any_of_the_server_s_packages() -> None:
    assert run_without(OF_THE_SERVER, PLUG_IN) == "imported\n"


class Order(BaseModel):
    account: str
    amount: Annotated[int, Field(ge=1)] = 1


@actor
def make_thumbnail(url: str, width: Annotated[int, Field(ge=1, description="Pixels.")] = 64) -> dict[str, int]:
    """Makes a picture small."""
    return {"width": width, "url": len(url)}


@actor(name="pay", throws=ValueError, concurrency={"key": ["/account", "/amount"], "limit": 2})
async def settle(order: Order, *, context: AsyncContext) -> Order:
    await context.sleep(0)
    return order


def test_it_stays_the_plain_function() -> None:
    assert make_thumbnail("abc") == {"width": 64, "url": 3}
    assert (make_thumbnail.__name__, make_thumbnail.__doc__) == ("make_thumbnail", "Makes a picture small.")
    assert asyncio.iscoroutinefunction(settle.fn)
    assert settle.is_async
    assert not make_thumbnail.is_async


def test_its_options_are_kept_and_its_name_is_the_function_s() -> None:
    assert make_thumbnail.name == "make-thumbnail"
    assert (make_thumbnail.timeout_seconds, make_thumbnail.max_retries, make_thumbnail.provider) == (None, None, None)
    assert (settle.name, settle.throws) == ("pay", (ValueError,))
    assert (settle.concurrency_key, settle.concurrency_limit) == (("/account", "/amount"), 2)


def test_the_schema_is_drawn_from_the_parameters() -> None:
    schema = payload_of(make_thumbnail).schema()
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["url"]
    assert schema["properties"]["width"] | {"title": ""} == {
        "type": "integer", "minimum": 1, "default": 64, "description": "Pixels.", "title": "",
    }  # fmt: skip
    assert result_schema_of(make_thumbnail) == {"type": "object", "additionalProperties": {"type": "integer"}}


def test_one_model_is_the_whole_payload_and_refuses_what_it_does_not_know() -> None:
    payload = payload_of(settle)
    assert (payload.whole, payload.context) == ("order", "context")
    assert payload.schema()["properties"].keys() == {"account", "amount"}
    assert payload.schema()["additionalProperties"] is False
    assert payload.arguments({"account": "a"}) == {"order": Order(account="a")}
    with pytest.raises(Misfit, match=r"^/colour: there is no such field$"):
        payload.arguments({"account": "a", "colour": "red"})


def test_a_payload_is_read_by_the_annotations() -> None:
    payload = payload_of(make_thumbnail)
    assert payload.arguments({"url": "abc"}) == {"url": "abc", "width": 64}
    assert payload.arguments({"url": "abc", "width": 3.0}) == {"url": "abc", "width": 3}, "as a JSON Schema has it"
    with pytest.raises(Misfit, match=r"/url: must be given; /width: must be greater than or equal to 1"):
        payload.arguments({"width": 0})


def test_parameters_may_be_called_as_what_pydantic_has() -> None:
    @actor
    def awkward(copy: int, model_config: str, schema: str = "x") -> None: ...

    payload = payload_of(awkward)
    assert payload.arguments({"copy": 1, "model_config": "y"}) == {"copy": 1, "model_config": "y", "schema": "x"}
    assert payload.schema()["required"] == ["copy", "model_config"]


def test_what_cannot_be_drawn_of_a_result_is_left_out() -> None:
    @actor
    def anything() -> Any:
        return None

    @actor
    def strange() -> asyncio.Event:
        return asyncio.Event()

    assert (result_schema_of(anything), result_schema_of(strange)) == (None, None)


def unannotated(text) -> None: ...  # type: ignore[no-untyped-def]
def bare_context(text: str, context) -> None: ...  # type: ignore[no-untyped-def]
def starred(*texts: str) -> None: ...
def double_starred(**texts: str) -> None: ...
def positional(text: str, /) -> None: ...
def not_json(event: asyncio.Event) -> None: ...
def unknown(text: "Nowhere") -> None: ...  # type: ignore[name-defined] # noqa: F821


@pytest.mark.parametrize(
    ("fn", "sentence"),
    [
        (unannotated, "actor unannotated: parameter text has no annotation; give it one, as in `text: str`"),
        (bare_context, "actor bare-context: parameter context has no annotation; give it one: windlass.Context"),
        (starred, "actor starred: *texts says nothing about the payload; name its fields one by one"),
        (double_starred, "actor double-starred: **texts says nothing about the payload; name its fields one by one"),
        (positional, "actor positional: parameter text must be one that can be given by its name, not before a /"),
        (not_json, "actor not-json: its payload cannot be JSON: Unable to generate pydantic-core schema for"),
        (unknown, "actor unknown: its annotations cannot be read, for name 'Nowhere' is not defined"),
    ],
)
def test_parameters_that_make_no_payload_are_told_in_one_sentence(fn: Any, sentence: str) -> None:
    with pytest.raises(Misdeclared) as refused:
        payload_of(actor(fn)).schema()
    assert str(refused.value).startswith(sentence)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"name": "Translate"}, "the actor's name 'Translate' must be small letters"),
        ({"name": "1st"}, "the actor's name '1st' must be small letters"),
        ({"name": "a" * 42}, "must be small letters, digits and hyphens, a letter first, 41 at most"),
        ({"name": "batch"}, "the actor's name 'batch' is reserved, as bulk and requeue-orphaned are"),
        ({"throws": ("ValueError",)}, "actor probe: throws must be exceptions, and 'ValueError' is none"),
        ({"timeout_seconds": 0}, "actor probe: timeout_seconds must be a number of seconds above 0"),
        ({"max_age_seconds": "1h"}, "actor probe: max_age_seconds must be a number of seconds"),
        ({"max_retries": -1}, "actor probe: max_retries must be a whole number from 0 to 100"),
        ({"concurrency": {"key": "account", "limit": 2}}, "actor probe: concurrency must be as"),
        ({"concurrency": {"key": "/account"}}, "actor probe: concurrency must be as"),
    ],
)
def test_a_wrong_option_is_told_in_one_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Misdeclared) as refused:
        Actor(make_thumbnail.fn, **{"name": "probe", **options})
    assert sentence in str(refused.value)


async def call_model(text: str, to: str) -> str:
    return f"{text} in {to}"


@actor(throws=(ValueError,), timeout_seconds=600)
async def translate(text: str, to: str = "en", *, context: Context) -> str:
    """As SPEC 13 has it: a type checker agrees."""
    draft = await context.step("draft", call_model, text, to)
    context.progress("Polishing", percent=60)
    return await context.step("polish", call_model, draft, to)


def test_the_contract_s_example_has_its_schema() -> None:
    payload = payload_of(translate)
    assert (payload.context, payload.schema()["required"]) == ("context", ["text"])
    assert result_schema_of(translate) == {"type": "string"}
