"""What a long list and a long output cost the page: the longest task of its thread, as a ratio to a short one's."""

import math
import os
import re
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import expect

from bench.deployment import a_windlass, new_database, start_all
from bench.figures import Figure
from bench.output import CONFIGURATION, PATIENCE_SECONDS, PYTHON, SPEAKER
from tests.browser.chromium import a_browser, why_not
from tests.browser.visitor import Visitor
from tests.support.installation import KEY, Client
from tests.support.servers.private_servers import throw_away_servers

FEW, MANY = 100, int(os.environ.get("ROWS", "10000"))
SHORT, LONG = 100_000, int(os.environ.get("OUTPUT_BYTES", "10000000"))
LINE_BYTES = 75
FIRST_PAGE, FURTHER_PAGE = 50, 250
"""Rows that the page asks for at once."""
TIMES = 5
AIM = 3
NOT_LONG_MS = 50.0
"""What a browser does not count: nobody feels it."""
PATIENCE_MS = 120_000

LONGEST = """() => new Promise((done) => {
    const seen = new PerformanceObserver((list) => {
        seen.disconnect();
        done(Math.max(...list.getEntries().map((each) => each.duration)));
    });
    seen.observe({type: "longtask", buffered: true});
    setTimeout(() => done(0), 500);
})"""
"""Since the page was gone to."""

THROUGH_ALL = """async () => {
    const next = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    for (let y = 0; y < document.documentElement.scrollHeight; y += innerHeight * 4) {
        scrollTo(0, y);
        await next();
    }
}"""


def rows(visitor: Visitor, number: int) -> None:
    """Every page of the list, one after the other, then all of it past one's eyes."""
    visitor.goes_to(f"/tasks?tag=rows-{number}")
    visitor.is_done_loading()
    older = visitor.page.get_by_role("button", name="Older ones")
    for _ in range(math.ceil((number - FIRST_PAGE) / FURTHER_PAGE)):
        with visitor.page.expect_response(lambda answer: "cursor=" in answer.url, timeout=PATIENCE_MS):
            older.click()
    expect(older).to_have_count(0, timeout=PATIENCE_MS)
    visitor.page.evaluate(THROUGH_ALL)


def output(visitor: Visitor, task_id: str, lines: int) -> None:
    visitor.goes_to(f"/tasks/{task_id}")
    end = visitor.page.get_by_role("log", name="Output").locator("span").last
    expect(end).to_contain_text(f"{lines - 1:09d} ", timeout=PATIENCE_MS)


def longest_ms(visitor: Visitor, look: Callable[[Visitor], None]) -> float:
    """The median of five, each in a document of its own."""
    found = []
    for _ in range(TIMES):
        look(visitor)
        found.append(max(NOT_LONG_MS, float(visitor.page.evaluate(LONGEST))))
    return statistics.median(found)


def compared(name: str, short: float, long: float) -> Figure:
    ratio = long / short
    return Figure(
        name,
        f"{long:.0f} ms = {ratio:.2f} x {short:.0f} ms",
        f"<= {AIM} x",
        {"ms": long, "short_ms": short, "ratio": ratio},
        reached=ratio <= AIM,
    )


def said(client: Client, lines: int) -> str:
    payload = {"subagent_type": "speaker", "prompt": "Speak.", "params": {"lines": lines}}
    task = client.submit(actor="agent", payload=payload, timeout_seconds=PATIENCE_SECONDS)
    ended = client.finished(task["task_id"], seconds=PATIENCE_SECONDS)
    assert ended["status"] == "completed", ended["error"]
    return str(task["task_id"])


def measure(client: Client, visitor: Visitor) -> list[Figure]:
    visitor.signs_in_with(KEY)
    for number in (FEW, MANY):
        for begin in range(0, number, 1000):
            later = {"delay_seconds": 86_400, "tags": [f"rows-{number}"]}
            client.submit_many([later] * min(1000, number - begin))
    few, many = [longest_ms(visitor, lambda each, number=number: rows(each, number)) for number in (FEW, MANY)]  # type: ignore[misc]
    lines = [size // LINE_BYTES for size in (SHORT, LONG)]
    tasks = {number: said(client, number) for number in lines}
    short, long = [
        longest_ms(visitor, lambda each, number=number, task_id=task_id: output(each, task_id, number))  # type: ignore[misc]
        for number, task_id in tasks.items()
    ]
    return [
        compared(f"a list of {MANY:,} rows loaded and scrolled through, to one of {FEW}: the longest task", few, many),
        compared(f"{LONG / 1e6:g} MB of output, to {SHORT / 1e3:g} KB: the longest task", short, long),
    ]


def versions() -> dict[str, str]:
    with a_browser() as browser:
        return {"Chromium": re.sub(r"\.\d+$", "", browser.version)}


def figures() -> list[Figure]:
    if reason := why_not():
        raise SystemExit(reason)
    with throw_away_servers() as servers, tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        place.chmod(0o755)
        config = place / "windlass.toml"
        config.write_text(CONFIGURATION.format(python=PYTHON, program=SPEAKER))
        url = new_database(servers, "page")
        with a_windlass(url, servers, place, WINDLASS_CONFIG=str(config), WINDLASS_ACTOR_THREADS="8") as windlass:
            start_all(windlass)
            with a_browser() as browser, Visitor.comes(browser, windlass.url) as visitor:
                return measure(windlass.client, visitor)
