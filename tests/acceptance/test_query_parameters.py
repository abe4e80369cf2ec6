"""Wrong query parameters are refused in plain words, with the values that are allowed."""

import re
from typing import Any

import pytest

from tests.support.installation import Client, Windlass
from windlass.shared.wording import A_MOMENT

WRONG = {"uuid": "7", "date-time": "yesterday", "date": "yesterday"}
STATES = "blocked, queued, running, retrying, completed, dead, cancelled"
PLUS = "(in a URL, + is written %2B)"
SOME_ID = "01890a5d-ac96-774b-bcce-b302099a8057"


@pytest.fixture(scope="module")
def api(module_windlass: Windlass) -> Client:
    module_windlass.start("api")
    module_windlass.wait_until_answering()
    return module_windlass.client


def parameters_of(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """Path, name and schema of each parameter in the query of a GET."""
    return [
        (re.sub(r"{.*?}", SOME_ID, path), each["name"], kind_of(each["schema"], document))
        for path, methods in document["paths"].items()
        for each in methods.get("get", {}).get("parameters", [])
        if each["in"] == "query"
    ]


def kind_of(schema: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    """The one kind of value, without null, lists and names of shapes."""
    for below in (*schema.get("oneOf", ()), *schema.get("anyOf", ())):
        if below.get("type") != "null":
            return kind_of({**schema, "oneOf": (), "anyOf": (), **below}, document)
    if "$ref" in schema:
        return kind_of(document["components"]["schemas"][schema["$ref"].rpartition("/")[2]], document)
    return kind_of(schema["items"], document) if "items" in schema else schema


def test_every_wrong_value_is_answered_with_what_is_allowed(api: Client) -> None:
    tried = 0
    for path, name, schema in parameters_of(api.http.get("/schema/openapi.json").json()):
        allowed = [str(each) for each in schema.get("enum", ()) if each is not None]
        limits = [str(int(schema[each])) for each in ("minimum", "maximum") if each in schema]
        if schema["type"] == "string" and not allowed and schema.get("format") not in WRONG:
            continue
        wrong = WRONG.get(schema.get("format", ""), "foo")
        refused = api.http.get(path, params={"q": "abc", name: wrong} if "search" in path else {name: wrong})
        assert refused.status_code == 422, (path, name, refused.text)
        (error,) = refused.json()["errors"]
        assert error["pointer"] == f"/{name}", path
        assert refused.json()["detail"] == f"`{name}` {error['detail']}"
        assert error["detail"].endswith(f", not `{wrong}`")
        if name != "cursor":
            assert [each for each in (*allowed, *limits) if each not in error["detail"]] == [], (path, name)
        assert not re.search("[Ee]xpected|regex|enum|null|str`", error["detail"]), error
        tried += 1
    assert tried > 60


@pytest.mark.parametrize(
    ("query", "detail"),
    [
        ("status=runing", f"`status` must be one of {STATES} (did you mean `running`?), not `runing`"),
        ("limit=501", "`limit` must be a whole number from 1 to 500, not `501`"),
        (
            "limit=0&full=x",
            "`limit` must be a whole number from 1 to 500, not `0`; `full` must be true or false, not `x`",
        ),
        ("q=ab", "`q` must be text of 3 to 200 characters, not `ab`"),
        (
            "created_after=2030-01-31T12:00+02:00",
            f"`created_after` must be {A_MOMENT} {PLUS}, not `2030-01-31T12:00 02:00`",
        ),
        ("stauts=dead", "`stauts` is not a parameter of this path; did you mean `status`?"),
        ("limit=1&limit=2", "`limit` is given more than once, and takes one value"),
        (f"lane={'x' * 100}", f"`lane` must be one of fresh, retry, not `{'x' * 60}…`"),
    ],
)
def test_the_sentences(api: Client, query: str, detail: str) -> None:
    refused = api.http.get(f"/api/v1/tasks?{query}")
    assert refused.status_code == 422
    assert sorted(refused.json()["detail"].split("; ")) == sorted(detail.split("; "))


def test_a_missing_parameter_is_named(api: Client) -> None:
    refused = api.http.get("/api/v1/memory/search")
    assert (refused.status_code, refused.json()["detail"]) == (422, "`q` must be given")
