"""Actors that nothing names any more: views leave them out after a day without use, and an admin may forget them."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.an_api import an_api, new_key
from tests.support.installation import Windlass
from tests.support.registrations import own_actor, register
from tests.support.servers.databases import execute
from tests.support.servers.private_servers import Servers
from tests.support.waiting import wait_until
from windlass.shared import db
from windlass.shared.actors.built_in import built_in
from windlass.shared.settings import Settings
from windlass.shared.store.operating import workers

AGED = """
    UPDATE actor_versions SET registered_at = registered_at - interval '2 days', created_at = now() - interval '2 days';
    SELECT pg_notify('windlass_actors', '')
"""


@pytest.fixture(scope="module")
def api(servers: Servers, migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Windlass]:
    with an_api(servers, migrated_template, tmp_path_factory.mktemp("api")) as windlass:
        yield windlass


class Site:
    """The api's database as registrations and workers write it, and the api itself."""

    def __init__(self, windlass: Windlass) -> None:
        self.windlass = windlass
        self.url = windlass.environment["WINDLASS_DATABASE_URL"]
        self.http = windlass.client.http

    def configured(self, *names: str) -> None:
        """`windlass actors register` with these of the user's own, and none else."""
        register(self.url, *map(own_actor, names), *built_in().values())

    def worker(self, queue: str, state: str) -> None:
        about: dict[str, Any] = {"hostname": "h", "pid": 1, "queues": [queue], "capacity": 1}
        if state == "active":
            self._run(lambda pool: workers.register(pool, f"w-{queue}", **about, actor_versions={}))
        else:
            self._run(lambda pool: workers.leave(pool, f"w-{queue}", state=state, reason="told to"))

    def let_two_days_pass(self) -> None:
        for statement in AGED.split(";"):
            execute(self.url, statement)

    def get(self, path: str) -> Any:
        return self.http.get(f"/api/v1{path}").raise_for_status().json()

    def shown(self, name: str) -> list[bool]:
        """Whether each of the views has it."""
        metrics = self.http.get("/metrics").raise_for_status().text
        return [
            name in {each["name"] for each in self.get("/actors")["items"]},
            name in {each["name"] for each in self.get("/providers")["items"]},
            f"{name}.{name}" in {each["queue"] for each in self.get("/queues/status")["queues"]},
            f'queue="{name}.{name}"' in metrics or f'windlass_slots_held{{provider="{name}"' in metrics,
        ]

    def wait_until_shown(self, name: str, expected: list[bool]) -> None:
        wait_until(f"{name} is shown: {expected}", lambda: self.shown(name) == expected)

    def forget(self, name: str) -> httpx.Response:
        return self.http.delete(f"/api/v1/actors/{name}")

    def refusal(self, name: str) -> str:
        answer = self.forget(name)
        assert (answer.status_code, answer.json()["code"]) == (409, "actor-in-use"), answer.text
        return str(answer.json()["detail"])

    def _run(self, intent: Any) -> None:
        async def run() -> None:
            pool = await db.open_pool(Settings(database_url=self.url), "tests", most=1)
            try:
                await intent(pool)
            finally:
                await pool.close()

        asyncio.run(run())


@pytest.fixture
def site(api: Windlass) -> Site:
    return Site(api)


EVERYWHERE, NOWHERE = [True] * 4, [False] * 4


def test_an_actor_is_forgotten_when_nothing_stands_against_it(site: Site) -> None:
    site.configured("translate")
    site.wait_until_shown("translate", EVERYWHERE)
    task = site.http.post("/api/v1/tasks", json={"actor": "translate", "payload": {}}).raise_for_status().json()
    assert site.shown("translate") == EVERYWHERE
    assert site.refusal("translate").endswith("1 task of it is not finished; cancel them or wait")
    site.http.post(f"/api/v1/tasks/{task['task_id']}/cancel").raise_for_status()
    site.worker("translate.translate", "active")
    assert site.refusal("translate").endswith("1 worker serves it; stop them first")
    site.worker("translate.translate", "stopped")
    assert "the latest registration names it" in site.refusal("translate")
    site.configured()
    assert site.refusal("summarize") == "actor summarize cannot be forgotten: it comes with Windlass"
    user = {"Authorization": f"Bearer {new_key(site.windlass.client, 'user', 'ann')}"}
    assert site.http.delete("/api/v1/actors/translate", headers=user).status_code == 403
    assert site.shown("translate") == EVERYWHERE, "it was used today"

    gone = site.forget("translate")
    assert gone.json() == {"name": "translate", "queues": ["translate.translate"], "providers": ["translate"]}
    site.wait_until_shown("translate", NOWHERE)
    assert site.get(f"/tasks/{task['task_id']}")["status"] == "cancelled", "the history stays"
    again = site.forget("translate")
    assert (again.status_code, again.json()["code"]) == (404, "unknown-actor")
    assert site.get("/audit?action=actor.forget")["items"][0]["target"] == "translate"

    site.configured("translate")
    site.wait_until_shown("translate", EVERYWHERE)


def test_what_nobody_has_used_for_a_day_is_left_out_of_views(site: Site) -> None:
    site.configured("polish")
    site.wait_until_shown("polish", EVERYWHERE)
    site.let_two_days_pass()
    assert site.shown("polish")[0], "the latest registration names it"
    site.configured()
    site.wait_until_shown("polish", NOWHERE)
    task = site.http.post("/api/v1/tasks", json={"actor": "polish", "payload": {}})
    assert task.status_code == 201, "left out, and not forgotten"
    site.let_two_days_pass()
    site.wait_until_shown("polish", EVERYWHERE)


def test_the_command_line_forgets(site: Site) -> None:
    site.configured("dub")
    site.configured()
    key = site.http.headers["Authorization"].removeprefix("Bearer ")
    command = [sys.executable, "-m", "windlass", "actors", "forget", "dub", "--url", str(site.http.base_url)]
    environment = {**site.windlass.environment, "WINDLASS_API_KEY": key}
    done = subprocess.run(command, env=environment, cwd=Path.cwd(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "dub.dub" in done.stdout
    assert site.forget("dub").status_code == 404
