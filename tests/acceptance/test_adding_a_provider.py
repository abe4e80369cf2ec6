"""docs/adding_a_provider.md, followed to the letter: its files are written, and its provider is spoken to."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.acceptance.conftest import a_windlass_apart
from tests.support.command_line import Run, run
from tests.support.installation import PROJECT
from tests.support.pages import files_of, page
from tests.support.providers.atelier import KEY, Atelier, an_atelier
from tests.support.providers.small_server import on_a_loop
from tests.support.servers.private_servers import Servers
from windlass.shared.errors import ContentRejected, NotFound, ServiceUnavailable, Unauthorized
from windlass.shared.providers.base import Done, Failed, Found, MediaProvider, NotThere, Order, OrderUnknown, Pending
from windlass.shared.providers.http.addresses import Allowances
from windlass.shared.providers.http.download import download
from windlass.shared.providers.http.network import open_client
from windlass.shared.providers.registry import media_provider
from windlass.shared.settings import Settings

__all__ = ["run"]

PAGE = "adding_a_provider.md"
ORDER = Order("txt2img", "a lighthouse", reference="ours-1", params={"paper": "rough"})


@pytest.fixture
def atelier() -> Iterator[Atelier]:
    with an_atelier() as atelier:
        yield atelier


@pytest.fixture
def settings(atelier: Atelier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    """What the page says, but for the address: the real one is as imaginary as the provider."""
    for name, content in files_of(PAGE).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    monkeypatch.setenv("WINDLASS_CONFIG", str(tmp_path / "windlass.toml"))
    monkeypatch.setenv("ATELIER_API_KEY", KEY)
    monkeypatch.syspath_prepend(tmp_path)
    yield read_settings(atelier)
    for name in [name for name in sys.modules if name.partition(".")[0] == "our_providers"]:
        del sys.modules[name]


def read_settings(atelier: Atelier) -> Settings:
    here = {"atelier": {"base_url": f"{atelier.url}/v1"}}
    return Settings(providers=here, network={"allow_private": ["127.0.0.1"]})


@asynccontextmanager
async def the_adapter(settings: Settings) -> AsyncIterator[MediaProvider]:
    async with open_client(Allowances.of(settings), timeout_seconds=60) as http:
        yield media_provider(settings, "atelier", http)


async def ends_of(adapter: MediaProvider, job_id: str) -> list[Any]:
    """Every answer, to the one that is final."""
    answers: list[Any] = [await adapter.poll(job_id)]
    while isinstance(answers[-1], Pending):
        answers.append(await adapter.poll(job_id))
    return answers


def test_the_table_adds_a_queue_a_limit_and_a_rate(settings: Settings) -> None:
    provider = settings.providers["atelier"]
    assert "media.atelier" in settings.all_queues()
    assert (provider.limit, provider.rate and provider.rate.limit, provider.when_unknown) == (2, 30, "fail")


@on_a_loop
async def test_a_picture_is_ordered_awaited_and_fetched(settings: Settings, atelier: Atelier, tmp_path: Path) -> None:
    async with the_adapter(settings) as adapter, open_client(Allowances.of(settings), timeout_seconds=60) as http:
        ordered = await adapter.order(ORDER)
        waiting, done = await ends_of(adapter, ordered.job_id)
        assert (type(waiting), type(done)) == (Pending, Done)
        (url,) = done.urls
        found = await download(http, url, tmp_path / "picture", largest_bytes=1_000_000, seconds=60)
    (order,) = atelier.orders
    assert order == {"paper": "rough", "kind": "txt2img", "prompt": "a lighthouse", "reference": "ours-1"}
    assert (found.media_type, found.size_bytes) == ("image/png", len(atelier.picture))
    assert (tmp_path / "picture").read_bytes() == atelier.picture


@on_a_loop
async def test_an_order_whose_answer_is_lost_is_found_and_not_sent_again(settings: Settings, atelier: Atelier) -> None:
    lost = Order("txt2img", "lost", reference="ours-2")
    async with the_adapter(settings) as adapter:
        with pytest.raises(OrderUnknown):
            await adapter.order(lost)
        assert await adapter.find(lost, datetime.now(UTC)) == Found("j-1")
        assert isinstance(await adapter.find(ORDER, datetime.now(UTC)), NotThere)
    assert len(atelier.orders) == 1


@on_a_loop
async def test_a_job_can_be_refused_fail_be_stopped_or_be_unknown(settings: Settings) -> None:
    async with the_adapter(settings) as adapter:
        for prompt, kind in (("refused", ContentRejected), ("broken", ServiceUnavailable)):
            ordered = await adapter.order(Order("txt2img", prompt, reference=prompt))
            end = (await ends_of(adapter, ordered.job_id))[-1]
            assert isinstance(end, Failed)
            assert isinstance(end.error, kind)
        assert await adapter.cancel((await adapter.order(ORDER)).job_id)
        unknown = await adapter.poll("j-99")
        assert isinstance(unknown, Failed)
        assert isinstance(unknown.error, NotFound)
        assert adapter.job_of_callback({"job_id": "j-1", "state": "done"}) == "j-1"
        assert adapter.job_of_callback(["j-1"]) is None


@pytest.mark.usefixtures("settings")
def test_its_promises_are_tried_out(run: Run, atelier: Atelier) -> None:
    assert "windlass providers check atelier" in page(PAGE)
    alone = run("providers", "check", "atelier", "-o", "json")
    assert (alone.code, {each["state"] for each in alone.document["items"]}) == (0, {"kept", "skipped"})
    assert atelier.orders == []
    whole = run("providers", "check", "atelier", "--double", f"{atelier.url}/v1")
    assert (whole.code, {row[0] for row in whole.rows[1:]}) == (0, {"kept"}), whole.out
    assert len(atelier.orders) == 1


@pytest.mark.parametrize(
    ("right", "wrong", "promise"),
    [
        ("        with placing_an_order():", "        if True:", "order: a 500 leaves it in doubt (OrderUnknown)"),
        ("key=self._endpoint.api_key, ", "", "order: a 400 is InvalidInput"),
        ("            return Failed(error, None)", "            return Pending()", "poll: a job that nobody knows"),
        ('return Found(str(jobs[0]["id"])) if jobs else NotThere()', "return NotThere()", "order, find, poll"),
        (
            "if isinstance(body, dict) else None\n        return job_id if",
            "\n        return job_id if",
            "job_of_callback",
        ),
    ],
)
def test_a_promise_that_is_broken_is_named(
    run: Run, settings: Settings, tmp_path: Path, *, right: str, wrong: str, promise: str
) -> None:
    file = tmp_path / "our_providers" / "atelier.py"
    assert right in file.read_text()
    file.write_text(file.read_text().replace(right, wrong))
    tried = run("providers", "check", "atelier", "--double", str(settings.providers["atelier"].base_url))
    broken = [row[1] for row in tried.rows if row[0] == "broken"]
    assert tried.code == 1
    assert any(each.startswith(promise) for each in broken), tried.out


@pytest.mark.usefixtures("settings")
def test_a_task_names_it_and_gets_its_picture_though_the_answer_to_the_order_was_lost(
    atelier: Atelier, servers: Servers, migrated_template: str, management: httpx.Client, tmp_path: Path
) -> None:
    written = (tmp_path / "windlass.toml").read_text().replace("https://api.atelier.example", atelier.url)
    config = f'{written}\n[network]\nallow_private = ["127.0.0.1"]\n'
    path = {"PYTHONPATH": f"{tmp_path}:{PROJECT}"}
    with a_windlass_apart(
        servers, migrated_template, management, tmp_path, config=config, actors=("media",), **path
    ) as windlass:
        windlass.start_all()
        payload = {"action": "txt2img", "prompt": "a lighthouse, lost", "params": {"paper": "rough"}}
        client = windlass.client
        theirs = {**payload, "params": {"webhook": "https://elsewhere.example"}}
        refused = client.http.post("/api/v1/tasks/media", json={"provider": "atelier", **theirs})
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/params/webhook")
        task = client.finished(client.submit(actor="media", provider="atelier", payload=payload)["task_id"])
        assert task["status"] == "completed", task["error"]
        assert httpx.get(task["result"]["urls"][0], timeout=60, trust_env=False).content == atelier.picture
    (order,) = atelier.orders
    assert order["paper"] == "rough"


@pytest.mark.usefixtures("settings")
def test_without_the_key_the_page_s_variable_is_asked_for(atelier: Atelier, monkeypatch: pytest.MonkeyPatch) -> None:
    async def speak() -> None:
        async with the_adapter(read_settings(atelier)) as adapter:
            await adapter.order(ORDER)

    monkeypatch.setenv("ATELIER_API_KEY", "another-key")
    with pytest.raises(Unauthorized, match="atelier answered 401"):
        asyncio.run(speak())
    monkeypatch.delenv("ATELIER_API_KEY")
    with pytest.raises(Unauthorized, match="set ATELIER_API_KEY"):
        asyncio.run(speak())
