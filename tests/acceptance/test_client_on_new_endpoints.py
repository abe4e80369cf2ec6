"""The client and the commands on idempotency, why, queues, the dead letter queue, bulk, providers, keys and audit."""

import asyncio
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.installation import KEY, NOBODY, Windlass
from tests.support.waiting import wait_until
from windlass import (
    AsyncClient,
    Bulk,
    BulkNotFound,
    Client,
    EmptyFilter,
    Forbidden,
    IdempotencyKeyReused,
    Invalid,
    KeyNotFound,
    NewTask,
    ProviderNotFound,
    TaskDead,
    TaskNotFound,
    Unauthorized,
)
from windlass.services.cli.main import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def client(running_windlass: Windlass) -> Iterator[Client]:
    with Client(running_windlass.url, KEY) as client:
        yield client


@pytest.fixture
def run(running_windlass: Windlass, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command: its exit code, what it said and what it remarked."""
    monkeypatch.setenv("WINDLASS_URL", running_windlass.url)
    monkeypatch.setenv("WINDLASS_API_KEY", KEY)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def document(run: Run, *arguments: str) -> Any:
    code, out, err = run(*arguments, "-o", "json")
    assert code == 0, err
    return json.loads(out)


def died(client: Client, tag: str, payload: dict[str, Any] | None = None) -> str:
    with pytest.raises(TaskDead) as dead:
        client.run("probe", payload or {"outcome": "permanent"}, tags=[tag])
    return dead.value.task.task_id


def until_bulk(client: Client, bulk_id: str, state: str) -> Bulk:
    wait_until(f"bulk {state}", lambda: client.bulk_progress(bulk_id).state == state, seconds=60, every=0.1)
    return client.bulk_progress(bulk_id)


def test_one_idempotency_key_is_one_task(client: Client) -> None:
    with ThreadPoolExecutor(8) as pool:
        submits = [
            pool.submit(client.submit, "probe", {"result": 1}, idempotency_key="the-same", delay_seconds=600)
            for _ in range(16)
        ]
        tasks = [each.result() for each in submits]
    assert len({task.task_id for task in tasks}) == 1
    assert sorted(task.deduplicated for task in tasks).count(False) == 1
    with pytest.raises(IdempotencyKeyReused):
        client.submit("probe", {"result": 2}, idempotency_key="the-same")


def test_one_idempotency_key_is_one_batch(client: Client) -> None:
    wanted: list[NewTask] = [{"actor": "probe", "delay_seconds": 600, "tags": ["batch"]}] * 1002
    first = client.submit_many(wanted, idempotency_key="the-batch")
    again = client.submit_many(wanted, idempotency_key="the-batch")
    assert [task.task_id for task in again] == [task.task_id for task in first]
    assert {task.deduplicated for task in again} == {True}
    assert sum(1 for _ in client.list(tag="batch")) == 1002


def test_a_dedupe_key_is_one_task_while_it_lives(client: Client, run: Run) -> None:
    first = client.submit("probe", dedupe_key="alone", dedupe_ttl_seconds=600, delay_seconds=600)
    second = client.submit("probe", dedupe_key="alone", dedupe_ttl_seconds=600, delay_seconds=600)
    assert (second.task_id, second.deduplicated) == (first.task_id, True)
    code, out, err = run("submit", "probe", "--dedupe-key", "alone", "--delay", "600")
    assert (code, out.strip(), "there was one already" in err) == (0, first.task_id, True)
    batch = client.submit_many([{"actor": "probe", "dedupe_key": "alone"}, {"actor": "probe", "delay_seconds": 600}])
    assert [task.deduplicated for task in batch] == [True, False]


def test_why_says_what_a_task_waits_for(client: Client, run: Run) -> None:
    later = client.submit("probe", delay_seconds=600)
    assert client.why(later.task_id).reason == "waiting-for-time"
    behind = client.submit("probe", depends_on=[later.task_id])
    assert client.why(behind.task_id).reason == "waiting-for-dependencies"
    done = client.run("probe")
    assert client.why(done.task_id).reason == "finished"
    code, out, _ = run("why", later.task_id)
    assert (code, out.splitlines()[0]) == (0, "reason\twaiting-for-time")
    assert document(run, "why", later.task_id)["reason"] == "waiting-for-time"
    with pytest.raises(TaskNotFound):
        client.why(NOBODY)


def test_queues_are_counted(client: Client, run: Run) -> None:
    client.submit("probe", delay_seconds=600, tags=["counted"])
    queues = client.queues()
    (probe,) = [each for each in queues.queues if each.queue == "probe.probe"]
    assert (probe.actor, probe.provider) == ("probe", "probe")
    assert probe.scheduled >= 1
    assert queues.states["queued"] >= 1
    code, out, err = run("queues")
    assert code == 0
    assert out.startswith("QUEUE\tFRESH\tRETRY\t")
    assert "\nprobe.probe\t" in out
    assert " queued" in err
    assert {"queues", "states", "retry_ratio"} <= set(document(run, "queues"))


def test_the_dead_are_listed_and_grouped_by_what_they_died_of(client: Client, run: Run) -> None:
    ids = {died(client, "buried") for _ in range(3)}
    dead = list(client.dlq(tag="buried", page_size=2))
    assert {task.task_id for task in dead} == ids
    assert all(task.payload == {"outcome": "permanent"} for task in dead)
    (group,) = client.dlq_groups(tag="buried")
    assert (group.error_type, group.count) == ("InvalidInput", 3)
    assert group.example_task_id in ids
    assert group.oldest_at is not None
    assert group.newest_at is not None
    assert group.oldest_at <= group.newest_at
    _, out, _ = run("dlq", "--tag", "buried")
    assert {line.split("\t")[0] for line in out.splitlines()[1:]} == ids
    _, out, _ = run("dlq", "--group", "--tag", "buried")
    assert out.splitlines()[1].split("\t")[:2] == ["3", "InvalidInput"]
    assert document(run, "dlq", "--tag", "buried", "--limit", "2").keys() >= {"items", "next_cursor"}
    assert run("dlq", "--tag", "nobody") == (0, "", "no dead task is like that\n")
    assert run("dlq", "--group", "--tag", "nobody") == (0, "", "no dead task is like that\n")


def test_the_dead_are_revived_by_filter(client: Client, run: Run) -> None:
    once = {"fail_times": 1, "outcome": "permanent"}
    ids = [died(client, "revived", once) for _ in range(3)]
    started = document(run, "dlq", "revive", "--tag", "revived")
    assert started["matched"] == 3
    bulk = until_bulk(client, started["bulk_id"], "finished")
    assert (bulk.matched, bulk.changed) == (3, 3)
    assert [client.wait(task_id, timeout=90).status for task_id in ids] == ["completed"] * 3
    code, out, _ = run("bulk", bulk.bulk_id)
    assert (code, "state\tfinished" in out) == (0, True)
    with pytest.raises(EmptyFilter):
        client.revive({})
    with pytest.raises(BulkNotFound):
        client.bulk_progress(str(NOBODY))


def test_a_canary_goes_first(client: Client) -> None:
    for _ in range(3):
        died(client, "sick")
    started = client.revive({"tag": ["sick"]}, canary=1)
    assert started.bulk_id is not None
    stopped = until_bulk(client, started.bulk_id, "stopped")
    assert stopped.changed == 1


def test_tasks_are_cancelled_in_bulk(client: Client) -> None:
    client.submit_many([{"actor": "probe", "tags": ["bulk"], "delay_seconds": 600}] * 5)
    tried = client.bulk("cancel", {"tag": ["bulk"]}, dry_run=True)
    assert tried.matched == 5
    assert {task.status for task in client.list(tag="bulk")} == {"queued"}
    started = client.bulk("cancel", {"tag": ["bulk"]})
    assert started.bulk_id is not None
    wait_until("all are cancelled", lambda: {task.status for task in client.list(tag="bulk")} == {"cancelled"})
    with pytest.raises(EmptyFilter):
        client.bulk("cancel", {})


def test_a_provider_is_shown_and_changed(client: Client, run: Run) -> None:
    names = {provider.name for provider in client.providers()}
    assert {"probe", "one-by-one"} <= names
    provider = client.provider("one-by-one")
    assert (provider.limit.configured, provider.limit.effective, provider.queue) == (1, 1, "probe.one-by-one")
    assert client.set_provider("one-by-one", limit=3).limit.effective == 3
    assert client.set_provider("one-by-one", limit=None).limit.effective == 1
    rate = document(run, "providers", "set", "one-by-one", "--rate", "10/60")["rate"]
    assert rate["effective"] == {"limit": 10, "per_seconds": 60}
    assert client.set_provider("one-by-one", rate=None).rate.effective is None
    paused = client.set_provider("one-by-one", paused=True)
    assert paused.paused
    waiting = client.submit("probe", provider="one-by-one")
    assert client.why(waiting.task_id).reason == "provider-paused"
    code, out, _ = run("providers", "set", "one-by-one", "--resume", "--breaker", "auto")
    assert (code, "paused\tno" in out) == (0, True)
    assert client.wait(waiting.task_id, timeout=90).status == "completed"
    _, out, _ = run("providers")
    assert any(line.split("\t")[:3] == ["one-by-one", "probe.one-by-one", "0/1"] for line in out.splitlines())
    assert document(run, "providers", "show", "one-by-one")["name"] == "one-by-one"
    assert run("providers", "show", "nobody")[0] == 3
    with pytest.raises(Invalid):
        client.set_provider("one-by-one", limit=-1)
    with pytest.raises(ProviderNotFound):
        client.provider("nobody")


def test_who_holds_a_slot_is_told(client: Client) -> None:
    task = client.submit("probe", {"seconds": 60}, provider="one-by-one")
    wait_until("it runs", lambda: client.get(task.task_id).status == "running")
    slots = client.provider("one-by-one").slots
    assert slots.holders is not None
    assert [holder.task_id for holder in slots.holders] == [task.task_id]
    second = client.submit("probe", provider="one-by-one")
    assert client.why(second.task_id).reason == "provider-limit"
    client.cancel(task.task_id)
    assert client.wait(second.task_id, timeout=90).status == "completed"


def test_keys_are_made_used_and_revoked(client: Client, run: Run, running_windlass: Windlass) -> None:
    key = client.create_key("user", "alice", name="laptop", expires_in_seconds=3600)
    assert (key.role, key.user_id, key.name) == ("user", "alice", "laptop")
    assert key.expires_at is not None
    with Client(running_windlass.url, key.key) as alice:
        assert alice.run("probe").user_id == "alice"
        with pytest.raises(Forbidden):
            alice.keys()
        assert run("keys", "--key", key.key)[0] == 5
        listed = client.keys()
        assert key.key_id in {each.key_id for each in listed}
        client.delete_key(key.key_id)
        with pytest.raises(Unauthorized):
            alice.get(NOBODY)
    made = document(run, "keys", "create", "--role", "viewer", "--user", "eve")
    assert made["key"].startswith("wl_")
    _, out, _ = run("keys")
    assert any(line.split("\t")[:3] == [made["key_id"], "viewer", "eve"] for line in out.splitlines())
    assert run("keys", "revoke", made["key_id"])[0] == 0
    assert run("keys", "revoke", "nobody")[0] == 3
    with pytest.raises(KeyNotFound):
        client.delete_key("nobody")


def test_what_operators_did_is_kept(client: Client) -> None:
    key = client.create_key("user", "audited")
    client.delete_key(key.key_id)
    assert any(key.key_id in str((entry.target, entry.details)) for entry in client.audit(page_size=1))


def test_the_asynchronous_client_does_the_same(running_windlass: Windlass) -> None:
    async def use() -> None:
        async with AsyncClient(running_windlass.url, KEY) as client:
            same = [client.submit("probe", idempotency_key="async", delay_seconds=600) for _ in range(5)]
            assert len({task.task_id for task in await asyncio.gather(*same)}) == 1
            task = await client.submit("probe", delay_seconds=600)
            assert (await client.why(task.task_id)).reason == "waiting-for-time"
            assert (await client.queues()).queues
            assert await client.providers()
            assert (await client.provider("probe")).name == "probe"
            assert (await client.set_provider("probe", breaker="auto")).name == "probe"
            key = await client.create_key("viewer", "eve")
            assert key.key_id in {each.key_id for each in await client.keys()}
            assert (await client.delete_key(key.key_id)).key_id == key.key_id
            assert [entry async for entry in client.audit()]
            assert await client.dlq_groups(tag="nobody") == ()
            assert [each async for each in client.dlq(tag="nobody")] == []
            started = await client.bulk("cancel", {"tag": ["nobody"]})
            assert started.matched == 0

    asyncio.run(use())
