"""`make browser`: everything that the page offers, to each role, at every width and in both themes."""

import re
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser, Error, Locator, expect

from tests.browser.busy import BUSY, ROOMY, Busy, fill
from tests.browser.chromium import a_browser, why_not
from tests.browser.pictures import SIZES, THEMES, looking, views
from tests.browser.visitor import PATIENCE_MS, Visitor
from tests.support.installation import KEY
from tests.support.media_installation import a_studio
from tests.support.servers.private_servers import Servers, open_directory
from tests.support.waiting import wait_until
from tests.support.webhook_receiver import receiving

MANY = 5000
PAGE = 50
LEAVING = re.compile(r"^(Sign out|Theme:|Load it)")


@pytest.fixture(scope="module")
def busy(servers: Servers, migrated_template: str, management: httpx.Client) -> Iterator[Busy]:
    if reason := why_not():
        pytest.skip(reason)
    with (
        open_directory() as directory,
        a_studio(servers, migrated_template, management, directory, config=BUSY, **ROOMY) as studio,
        receiving() as receiver,
    ):
        yield fill(studio, receiver)


@pytest.fixture(scope="module")
def browser(busy: Busy) -> Iterator[Browser]:
    with a_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def keys(busy: Busy) -> dict[str, str]:
    def made(role: str) -> str:
        body = {"role": role, "user_id": role}
        return str(busy.client.http.post("/api/v1/keys", json=body).raise_for_status().json()["key"])

    return {"admin": KEY, "user": made("user"), "viewer": made("viewer")}


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("size", SIZES)
def test_every_view_is_sound_at_every_width_and_in_both_themes(
    busy: Busy, browser: Browser, size: str, theme: str
) -> None:
    with Visitor.comes(browser, busy.studio.windlass.url, **looking(size, theme)) as visitor:
        visitor.goes_to("/")
        visitor.is_asked_for_a_key()
        visitor.finds_nothing_wrong()
        visitor.signs_in_with(KEY)
        wrong = []
        for path in views(visitor, busy).values():
            visitor.goes_to(path)
            visitor.is_done_loading()
            visitor.is_quiet()
            if visitor.page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                wrong.append(f"{path} is wider than its window")
            try:
                visitor.finds_nothing_wrong()
            except AssertionError as error:
                wrong.append(str(error))
        assert wrong == []


@pytest.mark.parametrize("role", ["viewer", "user", "admin"])
def test_every_button_of_every_view_does_something_and_breaks_nothing(
    busy: Busy, browser: Browser, keys: dict[str, str], role: str
) -> None:
    """Each is pressed, what it asks is looked at and left with Back; nothing is thrown, and no dialog stays."""
    with Visitor.comes(browser, busy.studio.windlass.url) as visitor:
        visitor.goes_to("/")
        visitor.signs_in_with(keys[role])
        for path in views(visitor, busy).values():
            visitor.goes_to(path)
            visitor.is_done_loading()
            visitor.is_quiet()
            for number in range(buttons(visitor).count()):
                press_and_come_back(visitor, path, number)


def buttons(visitor: Visitor) -> Locator:
    return visitor.page.locator("main button:visible:enabled")


def press_and_come_back(visitor: Visitor, path: str, number: int) -> None:
    there = buttons(visitor).element_handles()
    if number >= len(there):
        return
    button = there[number]
    name = button.evaluate("(button) => button.ariaLabel ?? button.innerText")
    if LEAVING.match(name):
        return
    pressed = f"{path}: {name!r}"
    try:
        button.click()
    except Error as error:
        if button.evaluate("(button) => button.isConnected && !button.disabled"):
            raise AssertionError(pressed) from error
        return  # what it would have changed has changed by itself
    dialog = visitor.page.locator("dialog[open]")
    if dialog.count():
        back = dialog.get_by_role("button", name=re.compile("^(Back|Close)$"))
        expect(back, f"{pressed}: what it asks can be left").to_be_visible()
        back.click()
        expect(dialog, f"{pressed}: what it asked is gone").to_have_count(0)
    if visitor.page.url != visitor.page.evaluate("(path) => new URL(path, location.href).href", path):
        visitor.goes_to(path)
        visitor.is_done_loading()
        visitor.is_quiet()
    visitor.page.keyboard.press("Escape")


def test_what_is_not_there_is_said_below_a_heading_with_a_way_back(
    busy: Busy, browser: Browser, keys: dict[str, str]
) -> None:
    with Visitor.comes(browser, busy.studio.windlass.url) as visitor:
        visitor.signs_in_with(keys["user"])
        for path, heading, back in (
            (f"/tasks/{busy.tasks['running']}", "Task", "All tasks"),
            (f"/projects/{busy.projects['idle']}", "Project", "All projects"),
            (f"/schedules/{busy.schedules['past']}", "Schedule", "All schedules"),
            (f"/webhooks/{busy.webhooks['hears']}", "Webhook", "All webhooks"),
            (f"/memory/{busy.memories[0]}", "Memory", "All that is remembered"),
            ("/nowhere", "Nothing is here", "What goes on now"),
        ):
            visitor.goes_to(path)
            visitor.is_done_loading()
            expect(visitor.page.locator("main h1:visible")).to_have_text(heading)
            if path != "/nowhere":
                visitor.sees(re.compile("it may be somebody else.s"))
            visitor.finds_nothing_wrong()
            visitor.follows(back)
            visitor.is_done_loading()
            expect(visitor.page.locator("main [role=alert]")).to_have_count(0)


def test_a_view_that_breaks_or_cannot_be_loaded_keeps_its_heading_and_the_way_elsewhere(
    busy: Busy, browser: Browser
) -> None:
    with Visitor.comes(browser, busy.studio.windlass.url) as visitor:
        visitor.signs_in_with(KEY)
        visitor.page.route("**/page/Audit.js", lambda route: route.abort())
        visitor.page.route("**/api/v1/actors", lambda route: route.fulfill(json={"items": [{"name": "odd"}]}))
        for name in ("Audit", "Actors"):
            visitor.follows(name)
            expect(visitor.page.locator("main").get_by_role("alert"), name).to_be_visible(timeout=PATIENCE_MS)
            expect(visitor.page.locator("main h1:visible")).to_have_text(name)
            visitor.finds_nothing_wrong()
            visitor.follows("What goes on now")
            expect(visitor.page.locator("main h1:visible")).to_have_text("Now", timeout=PATIENCE_MS)
        assert len(visitor.troubles) == 1, "what was thrown is said to the console"
        visitor.troubles.clear()


def test_seven_tabs_share_two_connections(busy: Busy, browser: Browser) -> None:
    with Visitor.comes(browser, busy.studio.windlass.url) as first:
        first.goes_to("/")
        first.signs_in_with(KEY)
        tabs = [first, *(first.opens_another_tab() for _ in range(6))]
        for tab, path in zip(tabs, ["/", "/tasks", *(f"/tasks/{each}" for each in busy.tasks.values())], strict=False):
            tab.goes_to(path)
            tab.is_done_loading()
            tab.sees_it_live()
        assert streams(busy) <= 2
        task_id = busy.client.submit(payload={"seconds": 0})["task_id"]
        tabs[1].page.get_by_role("button", name=re.compile("new$")).click(timeout=PATIENCE_MS)
        expect(tabs[1].sees_its_row(task_id)).to_contain_text("completed", timeout=PATIENCE_MS)


def streams(busy: Busy) -> int:
    """How many the api carries at this moment."""
    port = busy.client.http.get("/metrics").text
    return int(
        sum(float(line.rsplit(" ", 1)[1]) for line in port.splitlines() if line.startswith("windlass_stream_clients{"))
    )


def test_thousands_of_tasks_arrive_and_nothing_jumps(busy: Busy, browser: Browser) -> None:
    with Visitor.comes(browser, busy.studio.windlass.url) as visitor:
        visitor.goes_to("/")
        visitor.signs_in_with(KEY)
        order = {"delay_seconds": 3600, "tags": ["many"]}
        ids = busy.client.submit_many([order] * 60)
        visitor.goes_to("/tasks?tag=many")
        visitor.is_done_loading()
        visitor.sees_it_live()
        row = visitor.page.locator("ul.tasks > li").nth(8)
        name = str(row.get_attribute("id"))
        visitor.page.evaluate("scrollTo(0, 120)")
        place = row.bounding_box()
        for _ in range(MANY // 500):
            ids += busy.client.submit_many([order] * 500)
            now = visitor.page.locator(f"[id='{name}']").bounding_box()
            assert now is not None
            assert place is not None
            assert abs(now["y"] - place["y"]) < 1, "what one looks at stays where it is"
        newest = [f"row-{task_id}" for task_id in sorted(ids, reverse=True)]

        def shown() -> list[str]:
            pill = visitor.page.get_by_role("button", name=re.compile("new$"))
            if pill.count():
                pill.click()
            return [str(each.get_attribute("id")) for each in visitor.page.locator("ul.tasks > li").all()[:PAGE]]

        wait_until(
            "the newest is on top, and none is left out", lambda: shown() == newest[:PAGE], seconds=20, every=0.2
        )
        visitor.presses("Older ones")
        expect(visitor.page.locator(f"[id='{newest[PAGE]}']")).to_have_count(1, timeout=PATIENCE_MS)


def test_everything_can_be_done_with_the_keyboard_alone(busy: Busy, browser: Browser) -> None:
    with Visitor.comes(browser, busy.studio.windlass.url) as visitor:
        keyboard = visitor.page.keyboard
        visitor.goes_to("/")
        visitor.is_asked_for_a_key()
        visitor.page.get_by_label("Key").focus()
        keyboard.type(KEY)
        keyboard.press("Enter")
        visitor.is_in()
        for key, path in (("t", "/tasks"), ("d", "/dead"), ("p", "/providers"), ("n", "/")):
            visitor.page.locator("body").press("g")
            keyboard.press(key)
            visitor.page.wait_for_url(re.compile(f"{path}$"))
        keyboard.press("/")
        keyboard.type("tag:keyboard")
        task_id = busy.client.submit(payload={"seconds": 600}, tags=["keyboard"])["task_id"]
        keyboard.press("Enter")
        visitor.sees_its_row(task_id)
        keyboard.press("j")
        keyboard.press("Enter")
        visitor.sees_the_task("running")
        press_by_tabbing_to(visitor, "Cancel")
        press_by_tabbing_to(visitor, "Cancel the task")
        visitor.sees_the_task("cancelled")


def press_by_tabbing_to(visitor: Visitor, name: str) -> None:
    """One button after the other, as somebody does who has no mouse; what has the focus can be seen to have it."""
    for _ in range(80):
        visitor.page.keyboard.press("Tab")
        focused = visitor.page.evaluate(
            """() => { const it = document.activeElement, style = getComputedStyle(it);
                return [it.textContent.trim(), style.outlineStyle !== "none" || style.boxShadow !== "none"]; }"""
        )
        if focused[0] == name:
            assert focused[1], f"nobody sees that {name} has the focus"
            visitor.page.keyboard.press("Enter")
            return
    pytest.fail(f"no way by the keyboard to {name}")
