"""Schedules, webhooks, memory and costs on the page: the buttons that matter, in one installation."""

import asyncio
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.browser.busy_clockwork import an_endpoint, read, tell
from tests.browser.chromium import why_not
from tests.browser.orders import new_key
from tests.browser.visitor import PATIENCE_MS, Visitor
from tests.support.agents_at_work import COMMAND
from tests.support.media_installation import Studio, a_studio
from tests.support.servers.private_servers import Servers, open_directory
from tests.support.waiting import wait_until
from tests.support.webhook_receiver import Receiver, receiving
from windlass.shared import db
from windlass.shared.settings import Settings
from windlass.shared.store.operating import statistics

KNOWING = """
import json, sys
order = json.load(sys.stdin)
print(json.dumps({"usage": {"cost_usd": 0.25, "prompt_tokens": 40, "completion_tokens": 2}}), flush=True)
print(json.dumps({"answer": f"I know {len(order.get('memories') or [])}"}), flush=True)
"""
CONFIG = """
[agents.knowing]
command = {command}
sandbox = "off"
memory = 3
stats = 7

[network]
allow_private = ["127.0.0.1"]
"""


@pytest.fixture(scope="module")
def house(servers: Servers, migrated_template: str, management: httpx.Client) -> Iterator[Studio]:
    if reason := why_not():
        pytest.skip(reason)
    with open_directory() as directory:
        program = directory / "knowing.py"
        program.write_text(KNOWING)
        config = CONFIG.format(command=[*COMMAND[:-1], str(program)])
        actors = ("probe", "agent", "embed", "webhook")
        settings = {"WINDLASS_MEMORY_GATHER_SECONDS": "0.2", "WINDLASS_DATA_DIR": str(directory / "data")}
        with a_studio(
            servers, migrated_template, management, directory, config=config, actors=actors, **settings
        ) as studio:
            yield studio


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


def test_a_schedule_is_written_in_words_started_paused_and_resumed_and_a_viewer_is_offered_nothing(
    house: Studio, admin: Visitor, chromium: Browser
) -> None:
    admin.goes_to("/schedules")
    admin.sees("There are no schedules yet.")
    admin.presses("New schedule")
    admin.page.get_by_label("Name").fill("nightly digest")
    admin.page.get_by_label("Expression").fill("30 2 * *")
    admin.sees("it has five fields")
    admin.page.get_by_label("Expression").fill("30 2 * * *")
    admin.page.get_by_label("Time zone").fill("Europe/Berlin")
    preview = admin.page.get_by_role("status", name="When it is due")
    expect(preview).to_contain_text(re.compile(r"02:30.*Europe/Berlin"), timeout=PATIENCE_MS)
    expect(preview.get_by_role("listitem")).to_have_count(5)
    admin.page.get_by_label("The task").fill('{"actor": "probe", "payload": {"seconds": 600}}')
    admin.finds_nothing_wrong()
    admin.presses("Make it")
    admin.page.wait_for_url(re.compile(r"/schedules/[0-9a-f-]{36}$"))
    path = f"schedules/{admin.page.url.rpartition('/')[2]}"
    admin.sees("It has not been due yet.")
    for said in ("It was started.", "It was skipped: the one before still lived."):
        admin.presses("Start now …")
        admin.confirms("Start it")
        admin.sees(said)
    strip = admin.page.get_by_role("list", name="Due times, the latest last").get_by_role("listitem")
    expect(strip).to_have_count(2, timeout=PATIENCE_MS)
    skipped, started = read(house, f"{path}/runs")["items"]
    assert (started["outcome"], skipped["outcome"]) == ("started", "skipped")
    admin.presses("Pause")
    admin.sees("It was paused.")
    assert read(house, path)["state"] == "paused"
    admin.finds_nothing_wrong()
    with Visitor.comes(chromium, house.windlass.url) as viewer:
        viewer.signs_in_with(new_key(house, "viewer", "eve"))
        for place in ("/schedules", f"/{path}", "/webhooks", "/memory", "/costs"):
            viewer.goes_to(place)
            viewer.is_done_loading()
            offered = viewer.page.locator("main button:visible").all_text_contents()
            assert set(offered) <= {"Search", "Save as CSV", "Copy"}, place
        assert viewer.calls("POST", f"/api/v1/{path}/resume", {}) == 403
    admin.presses("Resume")
    admin.sees_no("It was paused.")
    strip.first.get_by_role("link").click()
    assert admin.task_id() == started["task_id"]
    house.client.cancel(started["task_id"])


def test_a_secret_is_shown_once_and_what_was_held_is_sent_when_its_endpoint_is_enabled(
    house: Studio, admin: Visitor, receiver: Receiver
) -> None:
    admin.goes_to("/webhooks")
    admin.sees("There are no webhooks yet.")
    admin.presses("New webhook")
    admin.page.get_by_label("Url").fill(receiver.at("/hook"))
    admin.page.get_by_label("workflow.*").check()
    admin.finds_nothing_wrong()
    admin.presses("Make it")
    shown = admin.page.get_by_role("status", name="Secret")
    receiver.secrets["/hook"] = shown.locator("code").inner_text()
    admin.presses("I have it")
    admin.reloads()
    admin.is_done_loading()
    expect(shown).to_have_count(0)
    admin.follows(receiver.at("/hook"))
    admin.presses("Test")
    rows = admin.page.get_by_role("group", name="Deliveries").locator("tbody tr")
    expect(rows.first).to_contain_text("delivered", timeout=PATIENCE_MS)
    (test,) = receiver.got("/hook")
    assert (test.body["type"], test.fault) == ("webhook.test", None)

    admin.presses("Disable …")
    admin.confirms("Disable")
    admin.sees("Somebody disabled it.")
    tell(house, "workflows", name="tidy", tasks=[{"key": "only", "actor": "probe", "payload": {"seconds": 0}}])
    expect(rows.first).to_contain_text("held", timeout=PATIENCE_MS)
    admin.finds_nothing_wrong()
    admin.presses("Enable …")
    admin.confirms("Enable")
    expect(rows.first).to_contain_text("delivered", timeout=PATIENCE_MS)
    rows.first.get_by_role("link", name="workflow.completed").click()
    tries = admin.page.get_by_role("group", name="Every try").locator("tbody tr")
    expect(tries).to_have_count(1, timeout=PATIENCE_MS)
    expect(tries.first).to_contain_text("thanks")
    admin.presses("Send again")
    expect(tries).to_have_count(2, timeout=PATIENCE_MS)
    admin.finds_nothing_wrong()
    assert len({each.id for each in receiver.got("/hook")[1:]}) == 1


def test_a_gone_endpoint_says_so_and_is_found_by_its_state(house: Studio, admin: Visitor, receiver: Receiver) -> None:
    receiver.answer("/moved", 410)
    webhook_id = an_endpoint(house, receiver, "/moved", ["workflow.*"])
    tell(house, f"webhooks/{webhook_id}/test")
    admin.goes_to(f"/webhooks/{webhook_id}")
    admin.sees(re.compile("^It said 410: gone.*only a person"))
    admin.goes_to("/webhooks?state=gone")
    expect(admin.page.get_by_role("list", name="Webhooks").get_by_role("listitem")).to_have_count(1)


def test_an_agent_s_page_says_what_it_knew_and_memory_and_costs_have_it(house: Studio, admin: Visitor) -> None:
    def asks(prompt: str) -> str:
        order = {"subagent_type": "knowing", "prompt": prompt}
        task_id = str(house.client.submit(actor="agent", payload=order)["task_id"])
        assert house.client.finished(task_id)["status"] == "completed"
        return task_id

    asks("How many lighthouses stand on the coast?")
    question = "lighthouses on the coast"
    wait_until("it is embedded", lambda: read(house, f"memory/search?q={question}")["coverage"] == 1)
    second = asks("Which lighthouses stand on the coast?")
    admin.goes_to(f"/tasks/{second}")
    knew = admin.page.get_by_role("region", name="What it knew")
    expect(knew).to_contain_text("1 event on its stdin", timeout=PATIENCE_MS)
    expect(knew).to_contain_text("of 7 days on its stdin")
    expect(admin.page.get_by_role("region", name="Facts")).to_contain_text("$0.25")
    knew.get_by_role("listitem").get_by_role("link").click()
    admin.page.wait_for_url(re.compile(r"/memory/[0-9a-f-]{36}$"))

    admin.goes_to("/memory")
    admin.page.get_by_label("A question, or words").fill(question)
    admin.presses("Search")
    found = admin.page.get_by_role("region", name="What was found")
    expect(found.get_by_role("listitem").first).to_contain_text("by words", timeout=PATIENCE_MS)
    expect(found.get_by_role("status")).to_contain_text(re.compile("hash-256|By words alone"))
    admin.finds_nothing_wrong()

    day = house.client.get(second)["completed_at"][:10]
    count_of_late(house)
    admin.goes_to("/costs?by=subagent_type&days=7")
    row = admin.page.get_by_role("row", name=re.compile("^knowing"))
    expect(row).to_contain_text("$0.50", timeout=PATIENCE_MS)
    with admin.page.expect_download() as download:
        admin.presses("Save as CSV")
    assert download.value.path().read_text().splitlines()[0].startswith("day,subagent_type,created")
    assert day in download.value.path().read_text()
    admin.finds_nothing_wrong()


def count_of_late(house: Studio) -> None:
    """As the janitor does every minute; of yesterday, too, for midnight may have passed meanwhile. In a thread of its
    own, for the browser's has a loop already."""

    async def write() -> None:
        settings = Settings(database_url=house.windlass.environment["WINDLASS_DATABASE_URL"])
        pool = await db.open_pool(settings, "test", most=1)
        try:
            today = datetime.now(UTC).date()
            for day in (today - timedelta(days=1), today):
                await statistics.keep_figures(pool, day)
        finally:
            await pool.close()

    with ThreadPoolExecutor(1) as apart:
        apart.submit(asyncio.run, write()).result()
