"""A person in front of the page, in sentences."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Locator, expect

PATIENCE_MS = 60_000
WCAG = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")

expect.set_options(timeout=PATIENCE_MS)


class Visitor:
    """One tab. Whatever a script of the page throws, or its Content-Security-Policy forbids, is trouble."""

    def __init__(self, context: BrowserContext, troubles: list[str]) -> None:
        self.context = context
        self.troubles = troubles
        self.page = context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.page.on("pageerror", lambda error: troubles.append(str(error)))
        self.page.on("console", self._hear)

    @classmethod
    @contextmanager
    def comes(cls, browser: Browser, url: str, **options: Any) -> Iterator[Self]:
        """With a browser profile of their own; leaving, they have had no trouble."""
        context = browser.new_context(base_url=url, **options)
        troubles: list[str] = []
        try:
            yield cls(context, troubles)
        finally:
            context.close()
        assert not troubles, troubles

    def opens_another_tab(self) -> "Visitor":
        return Visitor(self.context, self.troubles)

    def _hear(self, message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text or "Content-Security-Policy" in message.text:
            self.troubles.append(message.text)

    # What they do.

    def goes_to(self, path: str) -> None:
        self.page.goto(path)

    def reloads(self) -> None:
        self.page.reload()

    def signs_in_with(self, key: str) -> None:
        if not self.page.url.startswith("http"):
            self.goes_to("/")
        self.page.get_by_label("Key").fill(key)
        self.presses("Sign in")
        self.is_in()

    def presses(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).click()

    def confirms(self, action: str) -> None:
        dialog = self.page.locator("dialog[open]")
        dialog.get_by_role("button", name=action, exact=True).click()
        expect(dialog).to_have_count(0)

    def follows(self, name: str) -> None:
        self.page.get_by_role("link", name=name, exact=True).first.click()

    # What they see.

    def is_in(self) -> None:
        expect(self.page.get_by_role("navigation", name="Views")).to_be_visible(timeout=PATIENCE_MS)

    def is_asked_for_a_key(self) -> None:
        expect(self.page.get_by_label("Key")).to_be_visible(timeout=PATIENCE_MS)

    def sees(self, text: str | re.Pattern[str]) -> None:
        expect(self.page.get_by_text(text).first).to_be_visible(timeout=PATIENCE_MS)

    def sees_no(self, text: str | re.Pattern[str]) -> None:
        expect(self.page.get_by_text(text)).to_have_count(0, timeout=PATIENCE_MS)

    def sees_the_task(self, status: str) -> None:
        expect(self.page.locator(".badge")).to_have_text(status, timeout=PATIENCE_MS)

    def sees_its_row(self, task_id: str) -> Locator:
        row = self.page.locator(f"[id='row-{task_id}']").first
        expect(row).to_be_visible(timeout=PATIENCE_MS)
        return row

    def sees_it_live(self) -> None:
        expect(self.page.get_by_text("Live", exact=True)).to_be_visible(timeout=PATIENCE_MS)

    def is_offered(self, name: str) -> bool:
        return self.page.get_by_role("button", name=name).or_(self.page.get_by_role("link", name=name)).count() > 0

    def is_done_loading(self) -> None:
        """The view itself, not only its frame: nothing is awaited any more."""
        self.is_in()
        expect(self.page.locator("main h1").first).to_be_visible(timeout=PATIENCE_MS)
        expect(self.page.locator("main [aria-busy=true]")).to_have_count(0, timeout=PATIENCE_MS)

    def is_quiet(self) -> None:
        """Nothing has been drawn for a while: pictures are there, and live figures have come."""
        self.page.evaluate(  # not `wait_for_function`, which would need what the page's policy forbids
            """() => new Promise((done) => {
                let last = performance.now();
                const seen = new MutationObserver(() => (last = performance.now()));
                seen.observe(document.querySelector("main"), {subtree: true, childList: true});
                const look = () => [...document.images].every((each) => each.complete || each.loading === "lazy")
                    && performance.now() - last > 400 ? (seen.disconnect(), done(true)) : setTimeout(look, 50);
                look();
            })"""
        )

    def navigation(self) -> list[str]:
        """Where they can go."""
        links = self.page.get_by_role("navigation", name="Views").get_by_role("link")
        return [str(link.get_attribute("href")) for link in links.all()]

    def task_id(self) -> str:
        self.page.wait_for_url(re.compile(r"/tasks/[0-9a-f-]{36}"))
        return self.page.url.rpartition("/")[2]

    def calls(self, method: str, path: str, body: object = None) -> int:
        """What REST answers to the page's own session, as a script of the page would ask."""
        status: int = self.page.evaluate(
            """async ([method, path, body]) => (await fetch(path, {
                method, headers: {"Content-Type": "application/json"}, body: body && JSON.stringify(body),
            })).status""",
            [method, path, body],
        )
        return status

    def finds_nothing_wrong(self) -> None:
        """By axe, which finds about half of what makes a page hard to use for who sees, hears or moves otherwise."""
        found = Axe().run(self.page, options={"runOnly": list(WCAG)}).response["violations"]
        assert not found, f"{self.page.url}: " + "; ".join(
            f"{each['id']} ({each['help']}): {[node['target'] for node in each['nodes'][:3]]}" for each in found
        )
