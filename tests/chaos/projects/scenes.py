"""Two short scenes with projects, for the mutations of them."""

import asyncio
import random

from tests.chaos.projects.people import People
from tests.chaos.record import Record

PROJECTS = 6
PRESSES = 20
ITEM = {"actor": "probe", "payload": {"seconds": 1.5}}


async def press_run(api_url: str, record: Record, dice: random.Random) -> None:
    """Twenty at a time press Run on each of six projects."""
    people = People(api_url, record, dice)
    try:
        for _ in range(PROJECTS):
            project_id = await people.make([ITEM, ITEM])
            presses = [people.call("run", project_id, "POST", "/run", json={}) for _ in range(PRESSES)]
            await asyncio.gather(*presses)
    finally:
        await people.close()


async def stop_loops(api_url: str, record: Record, dice: random.Random) -> None:
    people = People(api_url, record, dice)
    try:
        for _ in range(PROJECTS):
            project_id = await people.make([ITEM, ITEM, ITEM])
            await people.call("loop", project_id, "POST", "/run", json={"mode": "loop"})
            await people.until_claimed(project_id)
            await people.call("stop", project_id, "POST", "/queue/stop", is_repeated=True)
    finally:
        await people.close()
