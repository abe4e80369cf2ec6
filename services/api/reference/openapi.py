"""The OpenAPI document: what Litestar reads from the handlers, completed with the bodies, answers and errors."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from windlass.services.api.access.session_cookies import NAME
from windlass.services.api.http.errors import PROBLEM_JSON
from windlass.services.api.reference.actor_schemas import with_actors
from windlass.services.api.reference.documents.tasks import ProblemDocument
from windlass.services.api.reference.operation import PARAMETERS, PROBLEMS, Operation
from windlass.services.api.reference.operations import OPERATIONS
from windlass.services.api.reference.operations.actors import ABOUT_A_SHORTCUT, shortcuts
from windlass.shared.settings import Settings
from windlass.shared.submission.known import Actors

REFERENCE = "#/components/schemas/{model}"
PREFIX = "/api/v1"
NEEDS_A_KEY = (401, 429, 503)
TAKES_A_BODY = (400, 408, 413, 415, 422)

SECURITY_SCHEMES = {
    "key": {"type": "http", "scheme": "bearer", "description": "A key: wl_<id>_<secret>."},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": NAME,
        "description": "From `POST /session`, for our own page: changes need the same origin, and JSON.",
    },
}

ABOUT = """
Windlass carries long-running AI work and never lets go of it: submit a task, close the page, come back, and it is done,
once, with its whole story.

Send `Authorization: Bearer wl_…` with every request. Errors are `application/problem+json` with a stable `code`; a
field that is not as it should be is named by a JSON pointer. Every answer carries an `X-Request-ID`, yours if you sent
one, and `GET /tasks?request_id=` finds what that request submitted. While the database is away every call answers 503
with `Retry-After`, and nothing that was accepted is lost.
"""


def complete(generated: Mapping[str, Any], actors: Actors, settings: Settings) -> dict[str, Any]:
    """The whole document; `generated` knows paths, parameters and docstrings."""
    document = deepcopy(dict(generated))
    short = shortcuts(actors, settings)
    document["paths"] |= {path: {"post": like_a_submission(document, path)} for path in short}
    document["info"] = {"title": "Windlass", "version": "1", "description": ABOUT.strip()}
    document["servers"] = [{"url": "/"}]
    document["components"] = {
        "schemas": with_actors(schemas(), actors),
        "securitySchemes": SECURITY_SCHEMES,
    }
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            said = short.get(path) if method == "post" else None
            if (said := said or OPERATIONS.get((method.upper(), path))) is not None:
                describe(operation, said, method, needs_a_key=said.needs_a_key and path.startswith(PREFIX))
    document["tags"] = [{"name": tag} for tag in dict.fromkeys(said.tag for said in OPERATIONS.values())]
    return document


def like_a_submission(document: Mapping[str, Any], path: str) -> dict[str, Any]:
    """What a shortcut takes beside its body is what `POST /tasks` takes."""
    submission = deepcopy(document["paths"][f"{PREFIX}/tasks"]["post"])
    actor = path.rpartition("/")[2]
    return {**submission, "operationId": f"submit_{actor.replace('-', '_')}", "description": ABOUT_A_SHORTCUT}


def schemas() -> dict[str, Any]:
    """Every shape that is named in the operations, and the shapes within them."""
    models = dict.fromkeys(
        (model, "serialization")
        for said in OPERATIONS.values()
        for each in said.answers.values()
        for model in each.models
    )
    bodies = dict.fromkeys((said.body, "validation") for said in OPERATIONS.values() if said.body is not None)
    wanted: list[Any] = [(ProblemDocument, "serialization"), *models, *bodies]
    _, definitions = models_json_schema(wanted, ref_template=REFERENCE)
    found: dict[str, Any] = definitions["$defs"]
    return found


def describe(operation: dict[str, Any], said: Operation, method: str, *, needs_a_key: bool) -> None:
    operation["tags"] = [said.tag]
    operation["summary"] = said.summary
    for parameter in operation.get("parameters", []):
        describe_parameter(parameter)
    if said.takes_a_body:
        content: dict[str, Any] = {"schema": reference_to(said.body or said.body_shape)}
        if said.example is not None:
            content["example"] = said.example
        operation["requestBody"] = {"required": said.body_required, "content": {"application/json": content}}
    if said.raw_body is not None:
        file = {"schema": {"type": "string", "format": "binary"}}
        operation["requestBody"] = {"required": True, "content": {said.raw_body: file}}
    if needs_a_key:
        operation["security"] = [{"key": []}, {"session": []}]
    problems = {*said.problems, *(NEEDS_A_KEY if needs_a_key else ()), *(TAKES_A_BODY if said.takes_a_body else ())}
    if operation.get("parameters"):
        problems.add(422)
    if needs_a_key and method != "get":
        problems.add(403)  # a session's cookie from a foreign page, if not more
    operation["responses"] = {
        str(status): answer.described(reference_to) for status, answer in said.answers.items()
    } | {str(status): problem(status) for status in sorted(problems - said.answers.keys())}


def describe_parameter(parameter: dict[str, Any]) -> None:
    """A query cannot say null: what is optional is simply left out."""
    schema = parameter.get("schema", {})
    if "oneOf" in schema:
        kinds = [kind for kind in schema["oneOf"] if kind.get("type") != "null"]
        parameter["schema"] = {**{k: v for k, v in schema.items() if k != "oneOf"}, **kinds[0]}
    if parameter["name"] in PARAMETERS:
        parameter["description"] = PARAMETERS[parameter["name"]]
    for default in ("deprecated", "allowEmptyValue", "allowReserved"):
        parameter.pop(default, None)


def problem(status: int) -> dict[str, Any]:
    return {"description": PROBLEMS[status], "content": {PROBLEM_JSON: {"schema": reference_to(ProblemDocument)}}}


def reference_to(model: type[BaseModel] | str | None) -> dict[str, str]:
    return {"$ref": REFERENCE.format(model=model.__name__ if isinstance(model, type) else model)}
