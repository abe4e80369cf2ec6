"""Every operation of the OpenAPI document, tried by every role, with a key and by a session, on everybody's things."""

import asyncio
import itertools
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from tests.support.an_api import an_api, new_key
from tests.support.engine.media import a_content, generated
from tests.support.engine.memory import an_agent, catch_up
from tests.support.engine.schedules import wanted as a_schedule
from tests.support.engine.store import RULES, Engine, a_submission, an_engine
from tests.support.engine.webhooks import Endpoint
from tests.support.engine.workflows import a_workflow
from tests.support.installation import NOBODY, Client, Windlass
from tests.support.operations import OPERATIONS, expected
from tests.support.servers.databases import ask
from tests.support.servers.private_servers import Servers
from tests.support.things import a_bulk_job, a_failed_embedding_job
from windlass.shared.features.projects import operations
from windlass.shared.features.projects.operations import NewProject
from windlass.shared.features.schedules import changing
from windlass.shared.features.webhooks import endpoints
from windlass.shared.settings import Settings
from windlass.shared.storage import open_storage
from windlass.shared.store import tasks
from windlass.shared.store.memory import models
from windlass.shared.store.operating import workers
from windlass.shared.store.tasks import Claim, Claimed, Ending

ROLES = ("nobody", "user", "viewer", "admin")
BROWSERS = {f"{role}'s browser": role for role in ROLES[1:]}
"""Each with a session instead of its key."""
EVERYBODY = (*ROLES, *BROWSERS)
OUR_PAGE = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"}
WHOSE = ("own", "foreign", "unknown")
OWNERS = {"own": "ann", "foreign": "bob-the-foreigner"}
FOREIGN_MARKS = (OWNERS["foreign"], "a-foreign-payload", "a-foreign-error", "a-foreign-file", "a-foreign-prompt")
STACK_TRACE_MARK, PROVIDER_MARK, JOB_MARK = "a-stack-trace", "a-provider-detail", "a-provider-job"


@dataclass(frozen=True)
class Try:
    operation: str
    role: str
    whose: str | None
    thing: str | None
    status: int
    text: str

    def __str__(self) -> str:
        on = f" on {self.whose}" if self.whose else ""
        return f"{self.operation} by {self.role}{on}: {self.status} {self.text[:200]}"

    def told(self) -> Any:
        """The answer with what must differ from thing to thing left out."""
        document = json.loads(self.text.replace(str(self.thing), "<thing>"))
        document.pop("request_id", None)
        return document


class World:
    """An api with keys for every role, and things that belong to one user and to another."""

    def __init__(self, windlass: Windlass) -> None:
        self.windlass = windlass
        self.database_url = windlass.environment["WINDLASS_DATABASE_URL"]
        admin = windlass.client
        self.clients = {
            "nobody": Client(str(admin.http.base_url), "none"),
            "user": admin.with_key(new_key(admin, "user", OWNERS["own"])),
            "viewer": admin.with_key(new_key(admin, "viewer", "eve")),
            "admin": admin,
        }
        windlass.clients.append(self.clients["nobody"])
        del self.clients["nobody"].http.headers["Authorization"]
        for browser, role in BROWSERS.items():
            self.clients[browser] = admin.with_key("none")
            self.sign_in(browser, role)
        self.spare_keys = [new_key(admin, "user", "carl").split("_")[1] for _ in range(len(EVERYBODY) * len(WHOSE))]
        self.document = self.clients["nobody"].http.get("/schema/openapi.json").json()
        self.storage = open_storage(Settings(media_storage=windlass.environment["WINDLASS_MEDIA_STORAGE"]))
        self.things: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        asyncio.run(self._populate())

    def sign_in(self, browser: str, role: str) -> None:
        key = self.clients[role].http.headers["Authorization"].removeprefix("Bearer ")
        http = self.clients[browser].http
        http.headers.pop("Authorization", None)
        http.headers.update(OUR_PAGE)
        http.post("/api/v1/session", json={"key": key}).raise_for_status()

    @property
    def operations(self) -> set[str]:
        return {
            f"{method.upper()} {re.sub(r'{[^}]*}', '{}', path)}"
            for path, methods in self.document["paths"].items()
            for method in methods
            if method in {"get", "post", "put", "patch", "delete"}
        }

    def thing(self, about: str, whose: str) -> str:
        if about in {"provider", "actor"}:
            return "nowhere" if whose == "unknown" else "probe"
        if about == "worker":
            return "nobody" if whose == "unknown" else "a-worker"
        if about == "workflow-run":
            return "run-of-nobody" if whose == "unknown" else f"run-of-{whose}"
        if about == "key":
            return "nobody" if whose == "unknown" else self.spare_keys.pop()
        return str(NOBODY) if whose == "unknown" else self.things[about, whose].pop()

    def foreign_rows(self) -> list[Any]:
        query = "SELECT task_id, status, last_seq FROM tasks WHERE user_id = $1 ORDER BY task_id"
        return ask(self.database_url, query, OWNERS["foreign"])

    async def _populate(self) -> None:
        """Dead tasks, with everything in their errors that somebody is not to see, one for each try."""
        needed = len(EVERYBODY) * sum(operation.about == "task" for operation in OPERATIONS.values())
        async with an_engine(self.database_url) as engine:
            for whose, owner in OWNERS.items():
                ids = await self._dead_tasks(engine, owner, f"a-{whose}", needed)
                self.things["task", whose] = [str(task_id) for task_id in ids]
                for _ in range(len(EVERYBODY) * sum(each.about == "project" for each in OPERATIONS.values())):
                    wanted = NewProject(task_id=uuid4(), user_id=owner, name=f"a-{whose}-prompt", on_failure="stop")
                    self.things["project", whose].append(str((await operations.create(engine.pool, wanted)).project_id))
                for number in range(len(EVERYBODY) * sum(each.about == "schedule" for each in OPERATIONS.values())):
                    hourly = a_schedule(f"number {number}", user_id=owner, target={"task": {"actor": "probe"}})
                    self.things["schedule", whose].append(str(await changing.create(engine.pool, hourly)))
                for _ in range(len(EVERYBODY)):
                    self.things["bulk", whose].append(str(await a_bulk_job(engine, owner)))
                    self.things["content", whose].append(str(await self._a_file(engine, owner, whose)))
                for about in ("webhook", "delivery"):
                    for _ in range(len(EVERYBODY) * sum(each.about == about for each in OPERATIONS.values())):
                        endpoint = await Endpoint.made(engine, user_id=owner, description=f"a-{whose}-prompt")
                        sent = await endpoints.test(engine.pool, endpoint.webhook_id)
                        self.things[about, whose].append(str(endpoint.webhook_id if about == "webhook" else sent))
                number = len(EVERYBODY) * sum(operation.about == "workflow" for operation in OPERATIONS.values())
                self.things["workflow", whose] = [await a_finished_workflow(engine, owner) for _ in range(number)]
                await self._memory(engine, owner, whose)
            await workers.register(engine.pool, "a-worker", hostname="h", pid=1, queues=["probe.probe"], capacity=1)
            holding = await engine.submit(user_id=OWNERS["foreign"])
            await engine.start(holding, worker="a-foreign-error-s-worker", lease_seconds=3600)
            await engine.sql("UPDATE tasks SET provider_job_id = $1 WHERE status = 'dead'", JOB_MARK)

    async def _memory(self, engine: Engine, owner: str, whose: str) -> None:
        """Events, models and failed jobs, one for each try; each event has its words for a search to find."""

        def needed(about: str) -> range:
            return range(len(EVERYBODY) * sum(each.about == about for each in OPERATIONS.values()))

        for _ in needed("agent-event"):
            task_id = await an_agent(engine, f"a-{whose}-prompt", user_id=owner)
            await catch_up(engine)
            found = await engine.pool.fetchval("SELECT event_id FROM agent_events WHERE task_id = $1", task_id)
            self.things["agent-event", whose].append(str(found))
        await engine.sql("UPDATE agent_events SET gathered_at = at, lexemes = to_tsvector('english', text)")
        for number in needed("embedding-model"):
            model_id = await models.create(engine.pool, name=f"{whose}-{number}", provider="hash", dimensions=256)
            self.things["embedding-model", whose].append(str(model_id))
        for _ in needed("embedding-job"):
            job_id = await a_failed_embedding_job(engine)
            self.things["embedding-job", whose].append(str(job_id))

    async def _a_file(self, engine: Engine, owner: str, whose: str) -> UUID:
        task = {"user_id": owner, "workflow_run_id": f"run-of-{whose}"}
        request = {"prompt": f"a-{whose}-prompt"}
        content = a_content(f"a-{whose}-file".encode(), provider_url=f"https://files.example/{PROVIDER_MARK}")
        await generated(engine, [content], storage=self.storage, task=task, job_id=JOB_MARK, request=request)
        return content.content_id

    async def _dead_tasks(self, engine: Engine, owner: str, mark: str, number: int) -> list[UUID]:
        payload = {"result": f"{mark}-payload"}
        rows = await tasks.submit(engine.pool, [a_submission(user_id=owner, payload=payload) for _ in range(number)])
        claims = [Claim(row["task_id"], uuid4()) for row in rows]
        answers = await tasks.claim(engine.pool, "worker-1", claims, 30)
        error = {
            "type": "InvalidInput",
            "kind": "permanent",
            "message": f"{mark}-error",
            "details": {"body": PROVIDER_MARK},
            "stack_trace": STACK_TRACE_MARK,
            "attempt": 1,
        }
        claimed = [answer for answer in answers if isinstance(answer, Claimed)]
        await tasks.end(
            engine.pool,
            [Ending(each.task_id, each.attempt, each.claim_token, "bury", error=error) for each in claimed],
            RULES,
        )
        assert len(claimed) == number
        return [each.task_id for each in claimed]

    def try_out(self, name: str, role: str, whose: str | None) -> Try:
        operation = OPERATIONS[name]
        method, path = name.split(" ")
        thing = None if operation.about is None else self.thing(operation.about, str(whose))
        http = self.clients[role].http
        picture = {"content": operation.body, "headers": {"Content-Type": "image/png"}}
        body: dict[str, Any] = picture if isinstance(operation.body, bytes) else {"json": operation.body}
        with http.stream(method, path.replace("{}", str(thing)), **body) as answer:
            endless = path.endswith(("/v1/stream", "/queue/stream")) and answer.status_code == 200
            text = "" if endless else answer.read().decode()
        if name == "DELETE /api/v1/session" and role in BROWSERS:
            self.sign_in(role, BROWSERS[role])
        return Try(name, BROWSERS.get(role, role), whose, thing, answer.status_code, text)


async def a_finished_workflow(engine: Engine, owner: str) -> str:
    """One whose stream ends by itself."""
    flow = await a_workflow(engine, {"a": []}, owner=owner)
    await engine.cancel(flow.ids["a"])
    return str(flow.workflow_id)


def every_try(world: World, *roles: str) -> list[Try]:
    return [
        world.try_out(name, role, whose)
        for name, role in itertools.product(sorted(world.operations & set(OPERATIONS)), roles)
        for whose in (WHOSE if OPERATIONS[name].about else (None,))
    ]


@pytest.fixture(scope="module")
def world(servers: Servers, migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    directory: Path = tmp_path_factory.mktemp("roles")
    with an_api(servers, migrated_template, directory) as windlass:
        yield World(windlass)


@pytest.fixture(scope="module")
def foreign_rows(world: World) -> list[Any]:
    """As they were before anybody tried anything."""
    return world.foreign_rows()


@pytest.fixture(scope="module")
def tries(world: World, foreign_rows: list[Any]) -> list[Try]:
    """Those without a right to change anything of the foreign user's come first."""
    harmless = every_try(world, "nobody", "user", "viewer", "user's browser", "viewer's browser")
    assert world.foreign_rows() == foreign_rows, "somebody changed what is not theirs"
    return [*harmless, *every_try(world, "admin", "admin's browser")]


def test_every_operation_is_decided(world: World) -> None:
    assert world.operations - set(OPERATIONS) == set(), "say in tests/support/operations.py who may do it"


def test_every_role_gets_what_the_table_says(tries: list[Try]) -> None:
    wrong = [each for each in tries if each.status not in expected(OPERATIONS[each.operation], each.role, each.whose)]
    assert not wrong, "\n".join(map(str, wrong))


def test_a_refusal_is_a_problem_with_a_code(tries: list[Try]) -> None:
    codes = {401: "unauthorized", 403: "forbidden"}
    for each in tries:
        if each.status in codes:
            assert json.loads(each.text)["code"] == codes[each.status], each


def test_to_a_user_a_foreign_thing_is_as_if_it_did_not_exist(tries: list[Try]) -> None:
    by_operation: dict[str, dict[str | None, Try]] = defaultdict(dict)
    for each in tries:
        if each.role == "user" and OPERATIONS[each.operation].owned:
            by_operation[each.operation][each.whose] = each
    assert by_operation
    for answers in by_operation.values():
        assert answers["foreign"].told() == answers["unknown"].told()


def test_nothing_of_another_user_is_ever_shown_to_a_user(tries: list[Try]) -> None:
    leaks = [each for each in tries if each.role == "user" and any(mark in each.text for mark in FOREIGN_MARKS)]
    assert not leaks, "\n".join(map(str, leaks))
    assert any(mark in each.text for each in tries if each.role == "viewer" for mark in FOREIGN_MARKS)


@pytest.mark.parametrize(
    ("mark", "roles"),
    [(STACK_TRACE_MARK, {"admin"}), (PROVIDER_MARK, {"admin", "viewer"}), (JOB_MARK, {"admin", "viewer"})],
)
def test_stack_traces_and_provider_details_are_shown_to_whom_they_are_for(
    tries: list[Try], mark: str, roles: set[str]
) -> None:
    assert {each.role for each in tries if mark in each.text} == roles


def problem_of(response: httpx.Response, thing: str) -> Any:
    document = json.loads(response.text.replace(thing, "<thing>"))
    del document["request_id"]
    return response.status_code, document


@pytest.mark.parametrize("field", ["depends_on", "parent_task_id"])
def test_a_new_task_cannot_name_a_foreign_one(world: World, foreign_rows: list[Any], field: str) -> None:
    def submit(role: str, relative: str) -> httpx.Response:
        body = {"actor": "probe", "delay_seconds": 3600, field: [relative] if field == "depends_on" else relative}
        return world.clients[role].http.post("/api/v1/tasks", json=body)

    foreign, unknown = str(foreign_rows[0]["task_id"]), str(NOBODY)
    refused = submit("user", foreign)
    assert refused.status_code == 422
    assert problem_of(refused, foreign) == problem_of(submit("user", unknown), unknown)
    assert submit("admin", foreign).status_code == 201
    assert submit("admin", unknown).status_code == 422
    mine = world.clients["user"].submit(delay_seconds=3600)["task_id"]
    assert submit("user", mine).status_code == 201


def test_a_filter_for_somebody_else_finds_nothing(world: World, foreign_rows: list[Any]) -> None:
    child = world.windlass.client.submit(
        user_id=OWNERS["foreign"], delay_seconds=3600, parent_task_id=str(foreign_rows[0]["task_id"])
    )
    for filters in ({"user_id": OWNERS["foreign"]}, {"parent_task_id": child["parent_task_id"]}):
        assert world.clients["user"].tasks(**filters) == []
        assert world.clients["viewer"].tasks(**filters) != []


def test_only_an_admin_submits_for_somebody_else(world: World) -> None:
    body = {"actor": "probe", "user_id": OWNERS["foreign"], "delay_seconds": 3600}
    refused = world.clients["user"].http.post("/api/v1/tasks", json=body)
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    accepted = world.clients["admin"].http.post("/api/v1/tasks", json=body)
    assert (accepted.status_code, accepted.json()["user_id"]) == (201, OWNERS["foreign"])
