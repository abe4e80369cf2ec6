"""`make pictures`: every view of a busy installation, wide and narrow, dark and light."""

import io
import sys
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser

from tests.browser.busy import Busy, a_busy_house
from tests.browser.chromium import a_browser, why_not
from tests.browser.visitor import Visitor
from tests.support.installation import KEY, PROJECT

SIZES = {"wide": (1280, 900), "narrow": (360, 780)}
THEMES = ("dark", "light")
IN_THE_DOCS = (
    "now-wide-dark",
    "task-thinking-wide-light",
    "project-looping-wide-light",
    "workflow-running-wide-light",
    "dead-wide-light",
    "providers-wide-dark",
    "tasks-narrow-dark",
)
LARGEST = 150_000
DOCS = PROJECT / "docs" / "pictures"


def main() -> None:
    if reason := why_not():
        sys.exit(reason)
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else "pictures")
    directory.mkdir(parents=True, exist_ok=True)
    with a_busy_house() as busy, a_browser() as browser:
        for size in SIZES:
            for theme in THEMES:
                take_all(browser, busy, directory, size, theme)
    print(f"windlass: {len(list(directory.glob('*.png')))} pictures in {directory}")
    if "--docs" in sys.argv:
        DOCS.mkdir(exist_ok=True)
        for name in IN_THE_DOCS:
            keep(directory / f"{name}.png", DOCS / f"{name}.png")


def take_all(browser: Browser, busy: Busy, directory: Path, size: str, theme: str) -> None:
    with Visitor.comes(browser, busy.studio.windlass.url, **looking(size, theme)) as visitor:
        suffix = f"{size}-{theme}"
        visitor.goes_to("/")
        visitor.is_asked_for_a_key()
        take(visitor, directory / f"sign-in-{suffix}.png")
        visitor.signs_in_with(KEY)
        for name, path in views(visitor, busy).items():
            visitor.goes_to(path)
            visitor.is_done_loading()
            visitor.is_quiet()
            take(visitor, directory / f"{name}-{suffix}.png")


def looking(size: str, theme: str) -> dict[str, Any]:
    width, height = SIZES[size]
    return {"viewport": {"width": width, "height": height}, "color_scheme": theme, "reduced_motion": "reduce"}


def views(visitor: Visitor, busy: Busy) -> dict[str, str]:
    """Those that the navigation has, and what lies below them."""
    hrefs = visitor.navigation()
    found = {href.strip("/") or "now": href for href in hrefs}
    found |= {f"task-{name}": f"/tasks/{task_id}" for name, task_id in busy.tasks.items()}
    found |= {f"project-{name}": f"/projects/{project_id}" for name, project_id in busy.projects.items()}
    found |= {f"workflow-{name}": f"/workflows/{workflow_id}" for name, workflow_id in busy.workflows.items()}
    found |= {f"schedule-{name}": f"/schedules/{schedule_id}" for name, schedule_id in busy.schedules.items()}
    found |= {f"webhook-{name}": f"/webhooks/{webhook_id}" for name, webhook_id in busy.webhooks.items()}
    found |= {f"delivery-{name}": f"/deliveries/{delivery_id}" for name, delivery_id in busy.deliveries.items()}
    return found | {
        "memory-found": "/memory?q=which+queues+keep+their+promises",
        "memory-none": "/memory?subagent_type=nobody",
        "memory-event": f"/memory/{busy.memories[0]}",
        "costs-users": "/costs?by=user_id&days=7",
        "workflows-none": "/workflows?name=nothing-is-like-this",
        "projects-none": "/projects?q=nothing-is-like-this",
        "tasks-none": "/tasks?q=nothing-is-like-this",
        "new-media": "/new/media",
        "new-again": f"/new/media?from={busy.tasks['picture']}",
        "actor-media": "/actors/media",
    }


def take(visitor: Visitor, path: Path) -> None:
    with Image.open(io.BytesIO(visitor.page.screenshot())) as picture:
        picture.convert("RGB").save(path, optimize=True)


def keep(picture: Path, place: Path) -> None:
    """A picture for the docs: with fewer colours where it would be large."""
    with Image.open(picture) as taken:
        small = taken.quantize(256, dither=Image.Dither.NONE) if picture.stat().st_size > LARGEST else taken
        small.save(place, optimize=True)


if __name__ == "__main__":
    main()
