"""The distribution's Chromium, driven by playwright, which brings and downloads no browser of its own."""

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

from windlass.services.laptop.packages import FOR_A_BROWSER, find_browser, line_to_install

QUIET = (
    "--no-sandbox",  # as root in a container there is no other way, and it visits nobody but us
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",  # as phones do: 360 px are 360 px
)


def why_not() -> str:
    """Why there can be no test in a browser here; empty where there can."""
    return "" if find_browser() else f"no Chromium here: {line_to_install(FOR_A_BROWSER)}"


@contextmanager
def a_browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=QUIET)
        try:
            yield browser
        finally:
            browser.close()
