"""A backup taken in the middle of everything, work that goes on, and a restore: what was done since is done again."""

import asyncio
import itertools
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.acceptance.conftest import PROVIDERS, a_windlass
from tests.conftest import a_database, a_virtual_host
from tests.support.installation import Client, Windlass
from tests.support.providers.fake_providers import FakeProviders, fake_providers
from tests.support.servers.databases import PROJECT, ask, execute
from tests.support.servers.private_servers import Servers, open_directory
from tests.support.up import WINDLASS
from tests.support.waiting import wait_until
from windlass.shared import db
from windlass.shared.settings import Settings
from windlass.shared.store import tasks
from windlass.shared.store.flow_control.flow import Rules
from windlass.shared.store.operating import workers
from windlass.shared.store.tasks import Ending

CONFIG = f"{PROVIDERS}\n[providers.leonardo]\npoll_seconds = 0.1\n"
ACTORS = ("media", "summarize", "agent", "probe")
TEXT = " ".join(["The keeper lit the lamp and wrote down the wind of that evening."] * 5)


LONG = {"seconds": 120}
SHORTER = """
UPDATE tasks SET payload = CASE actor
    WHEN 'probe' THEN payload - 'seconds' WHEN 'agent' THEN payload #- '{params,seconds}' ELSE payload END
"""
"""Nobody waits again for what took long so that it was under way when the backup was taken."""


@dataclass
class Lost:
    """What clients have seen of the time after the backup: how far their streams were."""

    seq: int
    cursor: str
    late_task: str


@contextmanager
def on(database_url: str, amqp_url: str, directory: Path, fake: FakeProviders) -> Iterator[Windlass]:
    settings = {"WINDLASS_FAKE_PROVIDERS_URL": fake.url, "WINDLASS_AGENT_SANDBOX": "best-effort"}
    with (
        open_directory() as data,
        a_windlass(
            database_url,
            amqp_url,
            directory,
            config=CONFIG,
            actors=ACTORS,
            WINDLASS_DATA_DIR=str(data),
            **settings,
        ) as windlass,
    ):
        yield windlass


def after_restore(windlass: Windlass, *options: str) -> subprocess.CompletedProcess[str]:
    command = [str(WINDLASS), "after-restore", *options]
    return subprocess.run(
        command, cwd=PROJECT, env=windlass.environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.timeout(300)
def test_every_task_ends_once_more_and_nothing_is_ordered_again(
    servers: Servers, migrated_template: str, management: httpx.Client, tmp_path: Path
) -> None:
    with (
        fake_providers(tmp_path) as fake,
        a_virtual_host(servers, management) as amqp_url,
        a_database(servers, "template0") as restored_url,
    ):
        backup = tmp_path / "backup"
        with (
            a_database(servers, migrated_template) as database_url,
            on(database_url, amqp_url, tmp_path, fake) as windlass,
        ):
            windlass.start_all()
            of_each_kind = submitted(windlass.client, fake)
            with at_a_standstill(fake):
                subprocess.run(["pg_dump", "-Fc", "-f", backup, database_url], check=True)
            lost = work_goes_on(windlass.client, of_each_kind)
        subprocess.run(["pg_restore", "--exit-on-error", "--no-owner", "-d", restored_url, backup], check=True)
        execute(restored_url, SHORTER)
        with on(restored_url, amqp_url, tmp_path, fake) as windlass:
            old_claims = claims_in(restored_url)
            assert len(old_claims) >= 5, "one task of each kind was under way"
            it_is_put_right(windlass, of_each_kind)
            assert answers_to_an_old_worker(restored_url, old_claims) == {(None, False)}
            windlass.start_all()
            everything_ends_once(windlass.client, of_each_kind, fake)
            clients_find_their_way(windlass.client, of_each_kind["probe"], lost)


def submitted(client: Client, fake: FakeProviders) -> dict[str, str]:
    """Each actor is at work, an order is known and another one not answered yet, and something waits behind others."""
    thinking = {"subagent_type": "demo", "prompt": "think", "params": {**LONG, "steps": 8}}
    ids = submit_each(
        client,
        probe={"provider": "one-by-one", "payload": {**LONG, "steps": 480}},
        behind={"provider": "one-by-one"},
        agent={"actor": "agent", "payload": thinking},
        summary={"actor": "summarize", "payload": {"content": f"{TEXT} [[pace=1 x1]]"}},
    )
    ids["blocked"] = str(client.submit(depends_on=[ids["behind"]])["task_id"])
    at_work = [ids[name] for name in ("probe", "agent", "summary")]
    wait_until("all are at work", lambda: {client.get(each)["status"] for each in at_work} == {"running"})
    # Last, for the providers are brought to a standstill while these are under way.
    picture = {"actor": "media", "provider": "leonardo"}
    ids |= submit_each(
        client,
        known={**picture, "payload": {"action": "txt2img", "prompt": "a boat [[seconds=10]]"}},
        unanswered={**picture, "payload": {"action": "txt2img", "prompt": "a lamp [[delay=10 x1]]"}},
    )
    wait_until("an order is known", lambda: client.get(ids["known"])["provider_job_id"])
    wait_until("both orders", lambda: len(orders(fake)) == 2)
    return ids


def submit_each(client: Client, **wishes: dict[str, Any]) -> dict[str, str]:
    return {name: str(client.submit(**wish)["task_id"]) for name, wish in wishes.items()}


def orders(fake: FakeProviders) -> list[str]:
    return [order["prompt"] for order in fake.books("leonardo")["orders"]]


@contextmanager
def at_a_standstill(fake: FakeProviders) -> Iterator[None]:
    """The providers answer nothing, so that orders stay as they are while the backup is taken."""
    os.kill(fake.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(fake.pid, signal.SIGCONT)


def work_goes_on(client: Client, ids: dict[str, str]) -> Lost:
    """Paid work ends, a client follows the probe, and one more task comes and goes."""
    with client.http.stream("GET", "/api/v1/stream", params={"task_id": ids["probe"]}) as stream:
        lines = itertools.takewhile(lambda line: not line.startswith("data: "), stream.iter_lines())
        *_, cursor = [line.removeprefix("id: ") for line in lines if line.startswith("id: ")]
    seq = client.events(ids["probe"])[-1]["seq"]
    for name in ("known", "unanswered"):
        assert client.finished(ids[name])["status"] == "completed"
    late = client.submit(wait=40)
    assert late["status"] == "completed"
    return Lost(seq, cursor, late["task_id"])


def told_until_complete(stream: httpx.Response) -> Iterator[str]:
    for line in stream.iter_lines():
        yield line
        if line == "event: complete":
            return


def claims_in(database_url: str) -> list[Ending]:
    """As the workers of the time of the backup remember them, their work done."""
    rows = ask(database_url, "SELECT task_id, attempt, claim_token FROM tasks WHERE status = 'running'")
    return [Ending(**dict(row), transition="complete", result={"from": "an old worker"}) for row in rows]


def answers_to_an_old_worker(database_url: str, claims: list[Ending]) -> set[tuple[str | None, bool]]:
    """What the ends of its attempts come to, and whether its leases are still its own."""

    async def offer() -> set[tuple[str | None, bool]]:
        settings = Settings(database_url=database_url)
        pool = await db.open_pool(settings, "test", most=1)
        try:
            ends = await tasks.end(pool, claims, Rules.of(settings))
            held = {claim.claim_token: claim.task_id for claim in claims}
            rows = await workers.renew(pool, "an-old-worker", held, 30)
            return set(zip(ends, (row["owned"] for row in rows), strict=True))
        finally:
            await pool.close()

    return asyncio.run(offer())


def it_is_put_right(windlass: Windlass, ids: dict[str, str]) -> None:
    api = windlass.start("api")
    windlass.wait_until_answering()
    refused = after_restore(windlass)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "windlass-api is connected" in refused.stderr
    api.terminate()
    api.wait(60)
    # By these rows, workers were heard of seconds ago: as long as a lease lasts, it might be true.
    rehearsal = wait_until("nobody was heard of lately", lambda: _if_done(after_restore(windlass, "--dry-run")))
    assert "this was a dry run" in rehearsal.stderr
    report = json.loads(after_restore(windlass, "-o", "json").stdout)
    assert report["running"] >= 5
    assert report["waiting"] >= 2
    orders = {order["task_id"]: order["status"] for order in report["open_orders"]}
    assert orders == {ids["known"]: "open", ids["unanswered"]: "intended"}
    assert {"leonardo", "openrouter"} <= {provider["name"] for provider in report["providers"]}
    again = after_restore(windlass)
    assert (again.returncode, again.stdout) == (0, "")
    assert "there is nothing to do" in again.stderr


def _if_done(done: "subprocess.CompletedProcess[str]") -> "subprocess.CompletedProcess[str] | None":
    return done if done.returncode == 0 else None


def everything_ends_once(client: Client, ids: dict[str, str], fake: FakeProviders) -> None:
    for name, task_id in ids.items():
        task = client.finished(task_id)
        assert task["status"] == "completed", (name, task["error"])
        assert task["result"] != {"from": "an old worker"}
        story = client.story(task_id)
        assert (story.count("restore"), story.count("complete")) == (1, 1), (name, story)
    assert len(orders(fake)) == 2, "both orders of the time of the backup were found again"


def clients_find_their_way(client: Client, task_id: str, lost: Lost) -> None:
    with client.stream(task_id, after=lost.seq) as stream:
        told = list(stream)
    assert told[0][2]["status"] == "running", "as the backup had it"
    assert told[-1][1] == "complete"
    headers = {"Last-Event-ID": lost.cursor}
    with client.http.stream("GET", "/api/v1/stream", params={"task_id": task_id}, headers=headers) as many:
        assert many.status_code == 200
        seqs = [json.loads(line[6:])["seq"] for line in told_until_complete(many) if line.startswith("data: ")]
    assert seqs == [seq for seq, _, _ in told[:-1]], "from the restore on, and nothing left out"
    assert client.http.get(f"/api/v1/tasks/{lost.late_task}").status_code == 404
