"""One wrong letter in any field of any body is told with its place and with the name that was meant."""

import copy
import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from windlass.services.api.access.auth import Caller
from windlass.services.api.http.errors import Problem, invalid_fields
from windlass.services.api.main import create_app
from windlass.services.api.reference.openapi import complete
from windlass.services.api.reference.operations import OPERATIONS
from windlass.services.api.reference.operations.actors import SHORTCUT, shortcuts
from windlass.services.api.reference.operations.tasks import NewBatch
from windlass.services.api.tasks.schemas import NewTask
from windlass.services.api.tasks.submission import accept, batch_of
from windlass.shared.actors.task_options import OPTIONS
from windlass.shared.settings import Settings
from windlass.shared.submission.known import built_in_actors
from windlass.shared.submission.refusal import escape

SETTINGS = Settings()
ADMIN = Caller("key", "admin", "ann")
ACTORS = built_in_actors()
DOCUMENT = complete(create_app(SETTINGS).openapi_schema.to_schema(), ACTORS, SETTINGS)
SHAPES = DOCUMENT["components"]["schemas"]
SHORTCUTS = shortcuts(ACTORS, SETTINGS)
WITH_BODIES = {
    **{key: said for key, said in OPERATIONS.items() if said.takes_a_body and said.needs_a_key},
    **{("POST", path): said for path, said in SHORTCUTS.items()},
}

Place = tuple[str | int, ...]


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = SHAPES[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    return found


def fields(schema: dict[str, Any], place: Place = ()) -> Iterator[Place]:
    """Every field that there is in a body, as the document describes it."""
    schema = resolved(schema)
    for choice in schema.get("anyOf", schema.get("oneOf", ())):
        yield from fields(choice, place)
    if schema.get("type") == "array" and "items" in schema:
        yield from fields(schema["items"], (*place, 0))
    for name, below in schema.get("properties", {}).items():
        yield (*place, name)
        yield from fields(below, (*place, name))


def bodies() -> Iterator[tuple[str, str, str | None, Place]]:
    """With the actor whose task it is, where the body is one of many that are told apart by that."""
    for (method, path), said in WITH_BODIES.items():
        (content,) = DOCUMENT["paths"][path][method.lower()]["requestBody"]["content"].values()
        schema = resolved(content["schema"])
        inside: Place = ("tasks", 0) if said.body is NewBatch else ()
        whole = resolved(schema["properties"]["tasks"]["items"]) if inside else schema
        for choice in whole["oneOf"] if said.body in {NewBatch, NewTask} else ():
            actor = resolved(choice)["properties"]["actor"]["const"]
            yield from ((method, path, actor, place) for place in dict.fromkeys(fields(choice, inside)))
        if said.body is not NewTask:
            own = (place for place in fields(schema) if not inside or len(place) == 1)
            yield from ((method, path, None, place) for place in dict.fromkeys(own))


def example_for(method: str, path: str, actor: str | None) -> Any:
    if actor is None:
        return WITH_BODIES[method, path].example or {}
    short = SHORTCUTS[SHORTCUT.format(actor=actor)].example
    options = {name: value for name, value in short.items() if name in OPTIONS}
    task = {"actor": actor, **options, "payload": {k: v for k, v in short.items() if k not in OPTIONS}}
    return {"tasks": [task]} if path == "/api/v1/tasks/batch" else task


def with_a_wrong_letter(word: str) -> str:
    middle = len(word) // 2
    return f"{word[:middle]}{'x' if word[middle] != 'x' else 'y'}{word[middle + 1 :]}"


def written(example: Any, place: Place) -> Any:
    """The example with one more field, all that it stands in made up on the way."""
    document: Any = copy.deepcopy(example)
    at = document
    for part, following in itertools.pairwise(place):
        if isinstance(at, list):
            assert at, "an example that is a list has an item"
        elif not isinstance(at.get(part), dict | list):
            at[part] = [{}] if isinstance(following, int) else {}
        at = at[part]
    at[place[-1]] = 1
    return document


def refusal_of(method: str, path: str, body: Any) -> Problem:
    try:
        if path == "/api/v1/tasks/batch":
            accept(batch_of(body)[0], ADMIN, SETTINGS, ACTORS, below="/tasks/0")
        elif path in SHORTCUTS:
            accept(body, ADMIN, SETTINGS, ACTORS, shortcut_for=path.rpartition("/")[2])
        elif path == "/api/v1/tasks":
            accept(body, ADMIN, SETTINGS, ACTORS)
        else:
            model = WITH_BODIES[method, path].body
            assert model is not None
            try:
                model.model_validate(body)
            except ValidationError as error:
                raise invalid_fields(error, "invalid", model) from error
    except Problem as problem:
        return problem
    raise AssertionError(f"nobody minds {body}")


EVERY_FIELD = sorted(bodies(), key=str)


def test_every_body_is_put_to_the_test() -> None:
    assert {path for _, path, _, _ in EVERY_FIELD} == {path for _, path in WITH_BODIES}
    places = {(path, place) for _, path, _, place in EVERY_FIELD}
    assert ("/api/v1/tasks/bulk", ("filter", "subagent_type")) in places
    assert ("/api/v1/tasks/agent", ("limits", "memory_mb")) in places
    assert ("/api/v1/tasks", ("retry_delays", "TimedOut", "curve")) in places
    assert ("/api/v1/tasks/batch", ("tasks", 0, "dedupe_key")) in places
    assert ("/api/v1/tasks/batch", ("tasks", 0, "payload", "limits", "memory_mb")) in places
    assert ("/api/v1/providers/{name}", ("rate", "per_seconds")) in places


@pytest.mark.parametrize(("method", "path", "actor", "place"), EVERY_FIELD, ids=str)
def test_a_wrong_letter_is_told_with_the_right_name(method: str, path: str, actor: str | None, place: Place) -> None:
    name = str(place[-1])
    wrong = (*place[:-1], with_a_wrong_letter(name))
    problem = refusal_of(method, path, written(example_for(method, path, actor), wrong))
    assert problem.status == 422
    pointer = "".join(f"/{escape(part)}" for part in wrong)
    told = [each["detail"] for each in problem.errors or [] if each["pointer"] == pointer]
    assert told, problem.errors
    assert f"`{name}`" in told[0] or name in told[0].split("there are ")[-1].split(", ")


@pytest.mark.parametrize(
    ("method", "path", "body", "meant"),
    [
        ("POST", "/api/v1/tasks", {"actor": "prode"}, "probe"),
        ("POST", "/api/v1/tasks", {"actor": "probe", "payload": {"outcome": "crahs"}}, "crash"),
        ("POST", "/api/v1/tasks", {"actor": "probe", "payload": {"error_type": "TimedOutt"}}, "TimedOut"),
        ("POST", "/api/v1/tasks", {"actor": "probe", "priority": "hihg"}, "high"),
        ("POST", "/api/v1/tasks/agent", {"subagent_type": "dmeo", "prompt": "p"}, "demo"),
        ("POST", "/api/v1/tasks/media", {"provider": "leonrado", "action": "txt2img", "prompt": "p"}, "leonardo"),
        ("POST", "/api/v1/tasks/media", {"provider": "leonardo", "action": "txt2mig", "prompt": "p"}, "txt2img"),
        ("POST", "/api/v1/tasks/bulk", {"action": "cancle"}, "cancel"),
        ("POST", "/api/v1/tasks/bulk", {"action": "cancel", "filter": {"status": ["dead", "queud"]}}, "queued"),
        ("POST", "/api/v1/keys", {"role": "admn", "user_id": "a"}, "admin"),
        ("PATCH", "/api/v1/providers/{name}", {"breaker": "clsoed"}, "closed"),
    ],
)  # fmt: skip
def test_a_wrong_letter_in_a_word_is_told_with_the_right_one(
    method: str, path: str, body: dict[str, Any], meant: str
) -> None:
    problem = refusal_of(method, path, body)
    assert any(f"`{meant}`" in each["detail"] for each in problem.errors or []), problem.errors
