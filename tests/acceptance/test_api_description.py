"""The OpenAPI document and its page: whole, true to every answer, and hard to break the API with."""

import asyncio
import hashlib
import html
import json
import re
import shlex
from base64 import b64encode
from contextlib import suppress
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.schemas import BaseSchema

from tests.support.engine.store import an_engine
from tests.support.installation import KEY, Client, Windlass
from tests.support.things import Things
from windlass.services.api.main import create_app
from windlass.services.api.reference.openapi import complete
from windlass.services.api.reference.operations import OPERATIONS
from windlass.services.api.reference.operations.actors import shortcuts
from windlass.services.api.reference.page import anchor
from windlass.services.api.reference.problems import PROBLEMS
from windlass.shared.settings import Settings
from windlass.shared.submission.known import built_in_actors

EVERYTHING = OPERATIONS | {("POST", path): said for path, said in shortcuts(built_in_actors(), Settings()).items()}
ENDLESS = {path for _, path in OPERATIONS if path.endswith("/stream")}
NOT_PROMISED = {
    "positive_data_acceptance",  # a body of the right shape may still ask for an unknown task or provider
    "use_after_free",  # nothing is ever deleted
    "ensure_resource_availability",
    "max_response_time",
    "ignored_auth",  # takes our key for a made-up one; test_roles tries every operation without and with each key
}

CALLBACK = "/api/v1/callbacks/{token}"
"""Its token is a secret of an open order, which no thing of these tests is."""

load_all_checks()


@pytest.fixture(scope="module")
def api(module_windlass: Windlass) -> Client:
    """Nothing but the api: it takes tasks without anybody to run them."""
    module_windlass.start("api")
    module_windlass.wait_until_answering()
    return module_windlass.client


@pytest.fixture(scope="module")
def described(api: Client) -> BaseSchema:
    document = api.http.get("/schema/openapi.json").raise_for_status().json()
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=str(api.http.base_url), headers={"Authorization": f"Bearer {KEY}"})
    return schema


def send_examples(operation: Any, mode: GenerationMode, examples: int, **fixed: Any) -> None:
    unpromised = [check for check in CHECKS.get_all() if check.__name__ in NOT_PROMISED]

    @settings(
        max_examples=examples, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(case=operation.as_strategy(generation_mode=mode, **fixed))
    def send(case: Any) -> None:
        if "wait" in (case.query or {}) and mode is GenerationMode.POSITIVE:
            case.query["wait"] = 0
        case.call_and_validate(excluded_checks=unpromised)

    send()


@pytest.mark.parametrize("mode", GenerationMode, ids=lambda mode: mode.value)
@pytest.mark.parametrize(("method", "path"), [key for key in EVERYTHING if key[1] not in ENDLESS], ids=str)
def test_whatever_is_sent_is_answered_as_described(
    described: BaseSchema, method: str, path: str, mode: GenerationMode
) -> None:
    try:
        send_examples(described[path][method], mode, 12)
    except Unsatisfiable:
        assert mode is GenerationMode.NEGATIVE
        assert not EVERYTHING[method, path].takes_a_body or not EVERYTHING[method, path].body_required
        pytest.skip("nothing that this operation takes can be wrong")


@pytest.mark.parametrize(
    ("method", "path"), [key for key in EVERYTHING if "{" in key[1] and key[1] not in ENDLESS | {CALLBACK}], ids=str
)
def test_whatever_an_admin_sends_about_a_thing_that_exists_is_answered_as_described(
    module_windlass: Windlass, api: Client, described: BaseSchema, method: str, path: str
) -> None:
    """Random ids, as in the other test, name nothing."""
    assert api.http.get("/api/v1/session").json()["role"] == "admin"

    async def make() -> dict[str, str]:
        async with an_engine(module_windlass.environment["WINDLASS_DATABASE_URL"]) as engine:
            return await Things(module_windlass, engine, api).made(path)

    thing = asyncio.run(make())
    send_examples(described[path][method], GenerationMode.POSITIVE, 4, path_parameters=thing)
    with suppress(Unsatisfiable):  # it takes nothing that can be wrong
        send_examples(described[path][method], GenerationMode.NEGATIVE, 4, path_parameters=thing)


def test_every_operation_is_described_and_no_other() -> None:
    paths = create_app(Settings()).openapi_schema.to_schema()["paths"]
    served = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    assert served == OPERATIONS.keys()


def test_every_shape_that_is_named_is_there() -> None:
    settings = Settings()
    text = json.dumps(complete(create_app(settings).openapi_schema.to_schema(), built_in_actors(), settings))
    named = set(re.findall(r'"#/components/schemas/([^"]+)"', text))
    assert named <= json.loads(text)["components"]["schemas"].keys()


def test_the_page_shows_every_operation_and_loads_nothing(api: Client) -> None:
    page = api.http.get("/schema", headers={"Authorization": ""})
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    for operation in OPERATIONS.values():
        assert operation.summary in page.text.replace("&#x27;", "'")
    assert not re.search(r"<script|<link|src=|url\(|https?://", page.text)


def test_the_page_shows_how_to_call_each_and_what_comes_back(api: Client) -> None:
    page = html.unescape(api.http.get("/schema").text)
    articles = dict(re.findall(r"<article id='([^']+)'>(.*?)</article>", page, re.DOTALL))
    document = api.http.get("/schema/openapi.json").json()
    for (method, path), said in OPERATIONS.items():
        described = document["paths"][path][method.lower()]
        article = articles[anchor(method.lower(), path)]
        assert described["description"].strip(), f"{method} {path} has no sentence"
        (curl,) = re.findall(r"<pre class=curl>(.*?)</pre>", article)
        words = shlex.split(curl)
        assert words[0] == "curl"
        assert "{" not in words[-1] or said.body is not None
        if said.body is not None:
            assert json.loads(words[words.index("--json") + 1]) == (said.example or {})
        if any(answer.models for answer in said.answers.values()):
            assert "An answer, 2" in article
    for event in ("progress", "output", "complete", "error", "cancelled"):
        assert f"event: {event}\ndata: {{" in page
    assert all(f"/problems/{code}" in page for code in PROBLEMS)


def test_a_browser_applies_the_page_s_own_style_and_nothing_else(api: Client) -> None:
    page = api.http.get("/schema", headers={"Authorization": ""})
    policy = dict(each.strip().split(" ", 1) for each in page.headers["content-security-policy"].split(";"))
    (style,) = re.findall(r"<style>(.*?)</style>", page.text, re.DOTALL)
    digest = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == {
        "default-src": "'none'", "style-src": f"'sha256-{digest}'", "base-uri": "'none'", "form-action": "'none'",
        "frame-ancestors": "'none'",
    }  # fmt: skip
    assert not re.search(r"\sstyle=|\son\w+=", page.text), "neither would be applied"


@pytest.mark.parametrize(
    "path", ["/api/v1/tasks", "/api/v1/tasks/no-id", "/nowhere", "/health", "/schema", "/schema/openapi.json"]
)
def test_no_answer_is_kept_or_taken_for_something_else(api: Client, path: str) -> None:
    headers = api.http.get(path).headers
    assert (headers["cache-control"], headers["x-content-type-options"]) == ("no-store", "nosniff")
    assert headers["content-security-policy"].startswith("default-src 'none'; ")
