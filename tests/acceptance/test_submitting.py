"""Submitting over HTTP: keys, batches and shortcuts, asked of two apis at once."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import asyncpg
import httpx
import pytest

from tests.conftest import a_database
from tests.support.installation import NOBODY, Client, Windlass
from tests.support.servers.private_servers import Servers
from tests.support.waiting import wait_until
from windlass.shared.actors.definition import Definition
from windlass.shared.store.operating import registry

PROBE = {"actor": "probe", "payload": {"seconds": 1}}
numbers = itertools.count(1)


@pytest.fixture(scope="module")
def database(servers: Servers, migrated_template: str) -> Iterator[str]:
    with a_database(servers, migrated_template) as url:
        yield url


@pytest.fixture(scope="module")
def apis(database: str, servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Client, Client]]:
    """Two apis on one database; nobody runs what they accept. The second learns nothing that it is not told."""
    windlass = Windlass(database, servers.amqp_url, tmp_path_factory.mktemp("submitting"))
    try:
        first, second = windlass.start_api(), windlass.start_api(WINDLASS_SAFETY_POLL_SECONDS="600")
        yield first, second
    finally:
        windlass.stop()
        print(windlass.log())


@pytest.fixture
def client(apis: tuple[Client, Client]) -> Client:
    return apis[0]


@pytest.fixture
def key() -> str:
    return f"key-{next(numbers)}"


def post(client: Client, body: Any, *, key: str | None = None, path: str = "", **options: Any) -> httpx.Response:
    headers = {} if key is None else {"Idempotency-Key": key}
    return client.http.post(f"/api/v1/tasks{path}", json=body, headers=headers, **options)


def refusal(response: httpx.Response) -> tuple[int, str, list[str]]:
    problem = response.json()
    assert response.headers["content-type"] == "application/problem+json"
    return response.status_code, problem["code"], [error["pointer"] for error in problem.get("errors", [])]


# Keys


@pytest.mark.parametrize("kind", ["idempotency", "dedupe"])
def test_fifty_at_once_over_two_apis_make_one_task(apis: tuple[Client, Client], key: str, kind: str) -> None:
    def submit(number: int) -> httpx.Response:
        client = apis[number % 2]
        return post(client, PROBE, key=key) if kind == "idempotency" else post(client, {**PROBE, "dedupe_key": key})

    with ThreadPoolExecutor(50) as threads:
        responses = list(threads.map(submit, range(50)))
    assert sorted(response.status_code for response in responses) == [200] * 49 + [201]
    assert len({response.json()["task_id"] for response in responses}) == 1
    for response in responses:
        repeated = response.status_code == 200
        assert response.json().get("deduplicated") == (True if repeated else None)
        assert response.headers.get("idempotent-replayed") == ("true" if repeated else None)


def test_a_repeat_answers_with_the_task_as_it_is_now(apis: tuple[Client, Client], key: str) -> None:
    first = post(apis[0], PROBE, key=key)
    assert first.status_code == 201
    assert "deduplicated" not in first.json()
    apis[0].cancel(first.json()["task_id"])
    again = post(apis[1], {"payload": {"seconds": 1}, "priority": 2, "actor": "probe"}, key=key)
    assert again.status_code == 200
    assert (again.json()["task_id"], again.json()["status"]) == (first.json()["task_id"], "cancelled")
    assert again.json()["deduplicated"] is True
    assert again.headers["idempotent-replayed"] == "true"
    assert again.headers["location"] == first.headers["location"]
    assert "deduplicated" not in apis[0].get(first.json()["task_id"])


def test_a_key_with_another_body_is_refused(client: Client, key: str) -> None:
    post(client, PROBE, key=key).raise_for_status()
    other = post(client, {"actor": "probe", "payload": {"seconds": 2}}, key=key)
    assert refusal(other) == (422, "idempotency-key-reused", ["/Idempotency-Key"])
    as_a_batch = post(client, {"tasks": [PROBE, PROBE]}, key=key, path="/batch")
    assert refusal(as_a_batch) == (422, "idempotency-key-reused", ["/Idempotency-Key"])


@pytest.mark.parametrize("key", ["", "x" * 256, "two words"])
def test_a_key_of_another_shape_is_refused(client: Client, key: str) -> None:
    assert refusal(post(client, PROBE, key=key)) == (422, "invalid-idempotency-key", ["/Idempotency-Key"])


def test_a_key_still_in_flight_is_a_conflict(client: Client, key: str, database: str) -> None:
    async def hold_and_submit() -> httpx.Response:
        connection = await asyncpg.connect(database)
        async with connection.transaction():
            await connection.execute(
                "INSERT INTO submission_keys (user_id, kind, key, task_id) VALUES ('admin', 'idempotency', $1, $2)",
                key,
                NOBODY,
            )
            response = await asyncio.to_thread(post, client, PROBE, key=key)
        await connection.close()
        return response

    response = asyncio.run(hold_and_submit())
    assert refusal(response) == (409, "idempotency-key-in-flight", [])
    assert int(response.headers["retry-after"]) >= 1


def test_waiting_works_for_a_task_that_was_found(client: Client, key: str) -> None:
    first = post(client, PROBE, key=key).json()["task_id"]
    waiting = post(client, PROBE, key=key, params={"wait": 0})
    assert (waiting.status_code, waiting.json()["task_id"]) == (202, first)
    client.cancel(first)
    ended = post(client, PROBE, key=key, params={"wait": 10})
    assert (ended.status_code, ended.json()["status"]) == (200, "cancelled")
    assert ended.json()["deduplicated"] is True


def test_a_dedupe_key_is_given_away_by_a_cancelled_task_only(client: Client, key: str) -> None:
    body = {**PROBE, "dedupe_key": key}
    first = post(client, body).json()
    assert first["dedupe_key"] == key
    assert post(client, {**body, "payload": {}}).json()["task_id"] == first["task_id"]
    client.cancel(first["task_id"])
    second = post(client, body)
    assert (second.status_code, second.json()["task_id"] != first["task_id"]) == (201, True)


def test_keys_are_the_task_s_user_s(client: Client, key: str) -> None:
    mine = post(client, {**PROBE, "dedupe_key": key})
    bobs = post(client, {**PROBE, "dedupe_key": key, "user_id": "bob"})
    assert (mine.status_code, bobs.status_code) == (201, 201)
    assert post(client, {**PROBE, "dedupe_key": key, "user_id": "bob"}).json()["task_id"] == bobs.json()["task_id"]


# Batches


def test_a_batch_with_repeated_keys(client: Client, key: str) -> None:
    batch = {"tasks": [{**PROBE, "dedupe_key": key}, PROBE, {**PROBE, "dedupe_key": key}]}
    first = post(client, batch, path="/batch")
    items = first.json()["tasks"]
    assert first.status_code == 201
    assert [item["deduplicated"] for item in items] == [False, False, True]
    assert items[0]["task_id"] == items[2]["task_id"] != items[1]["task_id"]
    assert "idempotent-replayed" not in first.headers


def test_a_repeated_batch_answers_with_the_same_tasks(apis: tuple[Client, Client], key: str) -> None:
    batch = {"tasks": [PROBE, {**PROBE, "priority": 1}, PROBE]}
    first = post(apis[0], batch, key=key, path="/batch")
    again = post(apis[1], batch, key=key, path="/batch")
    assert (first.status_code, again.status_code) == (201, 200)
    assert [item["task_id"] for item in again.json()["tasks"]] == [item["task_id"] for item in first.json()["tasks"]]
    assert all(item["deduplicated"] for item in again.json()["tasks"])
    assert again.headers["idempotent-replayed"] == "true"
    shorter = post(apis[0], {"tasks": batch["tasks"][:2]}, key=key, path="/batch")
    assert refusal(shorter)[:2] == (422, "idempotency-key-reused")


def test_a_batch_is_all_or_nothing_and_names_the_item(client: Client, key: str) -> None:
    good = {**PROBE, "tags": [key]}

    def refused(item: dict[str, Any]) -> tuple[int, str, list[str]]:
        return refusal(post(client, {"tasks": [good, good, good, item]}, path="/batch"))

    assert refused({**good, "priority": 99}) == (422, "invalid-task", ["/tasks/3/priority"])
    assert refused({**good, "payload": {"seconds": -1}}) == (422, "invalid-payload", ["/tasks/3/payload/seconds"])
    unknown = {**good, "depends_on": [str(NOBODY)]}
    assert refused(unknown) == (422, "unknown-dependency", ["/tasks/3/depends_on"])
    assert refused({**good, "dedupe_key": ""}) == (422, "invalid-task", ["/tasks/3/dedupe_key"])
    assert client.tasks(tag=key) == []
    for tasks in ([], [good] * 1001, "many", None):
        assert refusal(post(client, {"tasks": tasks}, path="/batch")) == (422, "invalid-batch", ["/tasks"])


def test_a_single_task_with_an_unknown_dependency_is_refused(client: Client) -> None:
    refused = post(client, {**PROBE, "depends_on": [str(NOBODY)]})
    assert refusal(refused) == (422, "unknown-dependency", ["/depends_on"])
    assert str(NOBODY) in refused.json()["detail"]


# Shortcuts


@pytest.mark.parametrize(
    ("actor", "payload", "options"),
    [
        ("summarize", {"content": "a long text", "max_words": 20}, {"priority": 1, "tags": ["t"]}),
        ("media", {"action": "txt2img", "prompt": "a lighthouse", "interaction_id": "i"}, {"provider": "leonardo"}),
        ("agent", {"subagent_type": "demo", "prompt": "do it"}, {"delay_seconds": 5, "max_retries": 0}),
    ],
)
def test_a_shortcut_makes_the_same_task(
    client: Client, actor: str, payload: dict[str, Any], options: dict[str, Any], key: str
) -> None:
    short = post(client, {**payload, **options}, path=f"/{actor}", key=key)
    assert short.status_code == 201
    whole = post(client, {"actor": actor, "payload": payload, **options}, key=key)
    assert (whole.status_code, whole.json()["task_id"]) == (200, short.json()["task_id"]), "the same request"
    task = short.json()
    assert (task["actor"], task["payload"], task["status"]) == (actor, payload, "queued")
    assert task["interaction_id"] == payload.get("interaction_id")


def test_a_shortcut_names_the_field_where_it_stands(client: Client) -> None:
    assert refusal(post(client, {"max_words": 0}, path="/summarize")) == (
        422, "invalid-payload", ["/content", "/max_words"],
    )  # fmt: skip
    media = post(client, {"action": "txt2img", "prompt": "x"}, path="/media")
    assert refusal(media) == (422, "provider-required", ["/provider"])
    assert "leonardo, midjourney" in media.json()["detail"]


# Actors of somebody's own


def definition(*optional: str) -> Definition:
    fields = {"text": {"type": "string", "minLength": 1}, **{name: {"type": "string"} for name in optional}}
    schema = {"type": "object", "properties": fields, "required": ["text"], "additionalProperties": False}
    return Definition(
        name="translate", module="our_actors", provider="translate", description="Puts a text into another language.",
        payload_schema=schema, timeout_seconds=77, max_retries=1,
    )  # fmt: skip


def ask_postgres(database: str, ask: Callable[[asyncpg.Connection], Awaitable[Any]]) -> Any:
    async def asked() -> Any:
        connection = await asyncpg.connect(database)
        try:
            return await ask(connection)
        finally:
            await connection.close()

    return asyncio.run(asked())


def version_of(client: Client, name: str) -> str | None:
    answer = client.http.get(f"/api/v1/actors/{name}")
    return answer.json()["version"] if answer.status_code == 200 else None


def test_an_actor_that_is_registered_takes_tasks_within_moments_though_nobody_runs_it(
    apis: tuple[Client, Client], database: str
) -> None:
    client = apis[0]
    unknown = post(client, {"actor": "translte", "payload": {}})
    assert refusal(unknown) == (422, "unknown-actor", ["/actor"])
    ask_postgres(database, lambda connection: registry.register(connection, [definition()]))
    newest = definition().version
    wait_until("known", lambda: {version_of(each, "translate") for each in apis} == {newest})
    whole = post(client, {"actor": "translate", "payload": {"text": "hi"}})
    assert whole.status_code == 201, whole.text
    task = whole.json()
    assert (task["provider"], task["queue"], task["status"]) == ("translate", "translate.translate", "queued")
    assert (task["timeout_seconds"], task["max_retries"]) == (77, 1)
    assert post(client, {"text": "hi", "priority": 1}, path="/translate").json()["payload"] == {"text": "hi"}
    assert client.why(task["task_id"])["reason"] == "no-worker"

    wrong = post(client, {"actor": "translate", "payload": {"texd": "hi"}})
    assert refusal(wrong) == (422, "invalid-payload", ["/payload/text", "/payload/texd"])
    assert "did you mean `text`?" in wrong.json()["detail"]
    assert refusal(post(client, {"text": ""}, path="/translate")) == (422, "invalid-payload", ["/text"])
    elsewhere = post(client, {"actor": "translate", "provider": "leonardo", "payload": {"text": "hi"}})
    assert refusal(elsewhere) == (422, "unknown-provider", ["/provider"])
    unknown = post(client, {"text": "hi"}, path="/translte")
    assert refusal(unknown) == (422, "unknown-actor", ["/actor"])
    said = "did you mean `translate`? there are agent, embed, media, probe, summarize, translate, webhook"
    assert said in unknown.json()["detail"]


def test_a_registered_actor_is_shown_wherever_one_looks(client: Client, database: str) -> None:
    ask_postgres(database, lambda connection: registry.register(connection, [definition()]))
    wait_until("known", lambda: version_of(client, "translate") == definition().version)
    listed = {each["name"]: each for each in client.http.get("/api/v1/actors").json()["items"]}
    assert set(listed) == {"agent", "embed", "media", "probe", "summarize", "translate", "webhook"}
    assert (listed["probe"]["built_in"], listed["translate"]["built_in"]) == (True, False)
    shown = client.http.get("/api/v1/actors/translate").json()
    assert shown["payload_schema"] == definition().payload_schema
    assert (shown["default_provider"], shown["providers"], shown["timeout_seconds"]) == ("translate", ["translate"], 77)
    assert shown["versions"] == [{"version": definition().version, "live_workers": 0, "workers": []}]
    assert post(client, shown["example"], path="/translate").status_code == 201
    missing = client.http.get("/api/v1/actors/translte")
    assert (missing.status_code, missing.json()["code"]) == (404, "unknown-actor")

    document = client.http.get("/schema/openapi.json").json()
    shapes = document["components"]["schemas"]
    assert shapes["NewTask"]["discriminator"]["mapping"]["translate"] == "#/components/schemas/task.translate"
    assert shapes["payload.translate"]["required"] == ["text"]
    body = document["paths"]["/api/v1/tasks/translate"]["post"]["requestBody"]["content"]["application/json"]
    assert body["schema"] == {"$ref": "#/components/schemas/shortcut.translate"}
    assert "text" in shapes["shortcut.translate"]["properties"]
    assert "/api/v1/tasks/translate" in client.http.get("/schema").text

    provider = client.http.get("/api/v1/providers/translate").json()
    assert (provider["actors"], provider["queues"]) == (["translate"], ["translate.translate"])
    assert provider["limit"]["effective"] is None
    queues = client.http.get("/api/v1/queues/status").json()["queues"]
    assert "translate.translate" in {each["queue"] for each in queues}


def test_while_two_versions_run_what_both_take_is_accepted(client: Client, database: str) -> None:
    old, new = definition(), definition("tone")

    async def deploy(connection: asyncpg.Connection) -> None:
        await registry.register(connection, [old])
        await connection.execute(
            """
            INSERT INTO workers (worker_id, hostname, pid, queues, capacity, actor_versions, broken, heartbeat_at)
            VALUES ('w-old', 'h', 1, '{translate.translate}', 1, jsonb_build_object('translate', $1::text),
                    '{"resize.resize": "no module named our_app"}', now() + interval '1 hour')
            """,
            old.version,
        )
        await registry.register(connection, [new])

    ask_postgres(database, deploy)
    wait_until("both known", lambda: len(client.http.get("/api/v1/actors/translate").json()["versions"]) == 2)
    assert version_of(client, "translate") == new.version
    assert post(client, {"text": "hi"}, path="/translate").status_code == 201
    refused = post(client, {"text": "hi", "tone": "dry"}, path="/translate")
    assert refusal(refused) == (422, "invalid-payload", ["/tone"])
    assert (
        f"says version {old.version}, which still runs; version {new.version} would take it" in refused.json()["detail"]
    )
    (worker,) = client.workers()
    assert (worker["actor_versions"], list(worker["broken"])) == ({"translate": old.version}, ["resize.resize"])
    workers = client.http.get("/health").json()["components"]["workers"]
    assert workers["status"] == "degraded"
    assert "resize.resize is broken: no module named our_app" in workers["detail"]

    ask_postgres(database, lambda connection: connection.execute("UPDATE workers SET state = 'stopped'"))
    wait_until(
        "the old one forgotten",
        lambda: post(client, {"text": "hi", "tone": "dry"}, path="/translate").status_code == 201,
    )


# With workers


def test_what_no_worker_can_do_waits_and_what_is_too_large_dies_readably(stopped_windlass: Windlass) -> None:
    stopped_windlass.environment |= {"WINDLASS_LARGEST_RESULT_BYTES": "1000", "WINDLASS_QUEUES": "probe.probe"}
    stopped_windlass.start_all()
    client = stopped_windlass.client
    assert {queue.split(".")[0] for queue in client.workers()[0]["queues"]} == {"probe"}
    waiting = post(client, {"content": "long"}, path="/summarize").json()["task_id"]
    large = client.submit(payload={"result": "x" * 1000}, wait=40)
    assert (large["status"], large["attempt"], large["result"]) == ("dead", 1, None)
    assert (large["error"]["type"], large["error"]["kind"]) == ("ResultTooLarge", "permanent")
    assert "1,000 can be kept" in large["error"]["message"]
    assert client.get(waiting)["status"] == "queued"
