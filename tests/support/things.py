"""One thing of every kind that a path of the api names, of user ann's: fresh for each test that may delete it."""

from collections.abc import Awaitable, Callable, Mapping
from uuid import UUID, uuid4

from tests.support.an_api import new_key
from tests.support.engine.media import a_content, generated
from tests.support.engine.memory import REMEMBERED, an_agent, catch_up
from tests.support.engine.schedules import wanted as a_schedule
from tests.support.engine.store import Engine
from tests.support.engine.webhooks import Endpoint
from tests.support.engine.workflows import a_workflow
from tests.support.installation import Client, Windlass
from windlass.shared.features.schedules import changing
from windlass.shared.features.webhooks import endpoints
from windlass.shared.settings import Settings
from windlass.shared.storage import open_storage
from windlass.shared.store.memory import models
from windlass.shared.store.operating import workers

OWNER = "ann"


async def a_bulk_job(engine: Engine, owner: str) -> UUID:
    bulk_id = uuid4()
    await engine.sql(
        """
        INSERT INTO bulk_jobs (bulk_id, action, filter, user_id, scope_user_id, state, matched)
        VALUES ($1, 'retry', '{}', $2, $2, 'finished', 0)
        """,
        bulk_id,
        owner,
    )
    return bulk_id


async def a_failed_embedding_job(engine: Engine) -> UUID:
    job_id: UUID = await engine.pool.fetchval(
        """
        INSERT INTO embedding_jobs (job_id, model_id, task_id, event_ids, state)
        VALUES (gen_random_uuid(), gen_random_uuid(), $1, '{}', 'failed') RETURNING job_id
        """,
        await engine.dead(actor="embed", provider="hash", **REMEMBERED),
    )
    return job_id


class Things:
    """`made` returns the parameters of a path."""

    def __init__(self, windlass: Windlass, engine: Engine, admin: Client) -> None:
        self._windlass, self._engine, self._admin = windlass, engine, admin
        self._makers: Mapping[str, Callable[[], Awaitable[object]]] = {
            "task_id": lambda: engine.dead(user_id=OWNER, payload={"result": "a payload"}),
            "bulk_id": lambda: a_bulk_job(engine, OWNER),
            "workflow_id": self._workflow,
            "event_id": self._agent_event,
            "model_id": lambda: models.create(engine.pool, name=f"m-{uuid4()}", provider="hash", dimensions=256),
            "job_id": lambda: a_failed_embedding_job(engine),
            "webhook_id": self._webhook,
            "delivery_id": self._delivery,
            "schedule": lambda: changing.create(
                engine.pool, a_schedule(f"s-{uuid4()}", user_id=OWNER, target={"task": {"actor": "probe"}})
            ),
            "content_id": self._content,
            "key_id": self._key,
            "worker_id": self._worker,
            "project_id": self._project,
        }

    async def made(self, path: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, maker in self._makers.items():
            if f"{{{name}}}" in path:
                found[name] = str(await maker())
        if "{item_id}" in path:
            answer = self._admin.http.post(
                f"/api/v1/projects/{found['project_id']}/items", json={"items": [{"actor": "probe"}]}
            )
            found["item_id"] = answer.raise_for_status().json()["items"][0]["item_id"]
        if "{name}" in path:
            found["name"] = await self._provider() if "/providers/" in path else "probe"
        if "{workflow_run_id}" in path:
            found["workflow_run_id"] = "a-run"
        return found

    async def _workflow(self) -> UUID:
        return (await a_workflow(self._engine, {"a": [], "b": ["a"]}, owner=OWNER)).workflow_id

    async def _agent_event(self) -> UUID:
        task_id = await an_agent(self._engine, "look after the lamp", user_id=OWNER)
        await catch_up(self._engine)
        found: UUID = await self._engine.pool.fetchval("SELECT event_id FROM agent_events WHERE task_id = $1", task_id)
        return found

    async def _webhook(self) -> UUID:
        return (await Endpoint.made(self._engine, user_id=OWNER)).webhook_id

    async def _delivery(self) -> object:
        return await endpoints.test(self._engine.pool, await self._webhook())

    async def _content(self) -> UUID:
        storage = open_storage(Settings(media_storage=self._windlass.environment["WINDLASS_MEDIA_STORAGE"]))
        content = a_content(uuid4().bytes)
        task = {"user_id": OWNER, "workflow_run_id": "a-run"}
        await generated(self._engine, [content], storage=storage, task=task, request={"prompt": "a lamp"})
        return content.content_id

    async def _key(self) -> str:
        return new_key(self._admin, "user", OWNER).split("_")[1]

    async def _worker(self) -> str:
        await workers.register(self._engine.pool, "a-worker", hostname="h", pid=1, queues=["probe.probe"], capacity=1)
        return "a-worker"

    async def _provider(self) -> str:
        """None that other things need: an admin may pause it."""
        await self._engine.provide("spare", limit=1)
        return "spare"

    async def _project(self) -> str:
        answer = self._admin.http.post("/api/v1/projects", json={"name": "a project"})
        return str(answer.raise_for_status().json()["project_id"])
