"""People with schedules: they edit, pause, resume, trigger and delete them while those are due, over bad links."""

import asyncio
import random
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.chaos.load.patient_client import NoAnswer, PatientClient
from tests.chaos.record import Record
from tests.chaos.schedules.deeds import CATCH_UPS, OVERLAPS, PERIODS, Deed, definitions
from tests.chaos.schedules.record import Call
from tests.chaos.schedules.witness import send_to_sleep
from windlass.shared.db import AWAY_OR_BUSY

EXPECTED = {200, 201, 202, 204, 404, 409}
PROJECTS = 3
ITEMS = 40
LOOK_EVERY_SECONDS = 0.5
LIVING = ["blocked", "queued", "running", "retrying"]


class People:
    """To be used on one event loop; everything asked and told is in the record."""

    def __init__(self, api_url: str, database_url: str, record: Record, dice: random.Random) -> None:
        self._record, self._dice, self._database_url = record, dice, database_url
        self._client = PatientClient([api_url], dice)

    async def close(self) -> None:
        await self._client.close()
        self._record.oddities += self._client.oddities

    async def make_all(self, number: int) -> None:
        projects = [await self._make_project(each) for each in range(PROJECTS)]
        for body in definitions(self._dice, number, projects):
            # By its name, so that asking again makes no second one.
            answer, _ = await self._client.until_answered("PUT", f"/schedules/{body['name']}", json=body)
            if answer.status_code not in {200, 201}:
                self._record.oddities.append(f"a schedule was answered with {answer.status_code}: {answer.text[:300]}")
                continue
            self._record.schedules.made.append(answer.json()["schedule_id"])

    async def do(self, deed: Deed) -> None:
        if self._record.schedules.made:
            dice = random.Random(deed.dice)
            await getattr(self, f"_{deed.kind}")(dice, dice.choice(self._record.schedules.made))

    async def bring_to_an_end(self) -> None:
        """All are deleted; then what they have started comes to its end."""
        for schedule_id in self._record.schedules.made:
            await self._call("delete", schedule_id, "DELETE", f"/schedules/{schedule_id}")
        while True:
            if not await self._living():
                return
            await asyncio.sleep(LOOK_EVERY_SECONDS)

    # Each kind of deed

    async def _edit(self, dice: random.Random, schedule_id: str) -> None:
        change: dict[str, Any] = {"overlap": dice.choice(OVERLAPS[:2]), "catch_up": dice.choice(CATCH_UPS)}
        if dice.random() < 0.5:
            change = {"every_seconds": dice.choice(PERIODS)}
        await self._call("edit", schedule_id, "PATCH", f"/schedules/{schedule_id}", json=change)

    async def _pause(self, _dice: random.Random, schedule_id: str) -> None:
        await self._call("pause", schedule_id, "POST", f"/schedules/{schedule_id}/pause")

    async def _resume(self, dice: random.Random, schedule_id: str) -> None:
        paused = await self._look_up("/schedules", {"state": "paused", "limit": "100"}) or []
        chosen = dice.choice(paused)["schedule_id"] if paused else schedule_id
        await self._call("resume", chosen, "POST", f"/schedules/{chosen}/resume")

    async def _trigger(self, _dice: random.Random, schedule_id: str) -> None:
        """Two people at the same time."""
        path = f"/schedules/{schedule_id}/trigger"
        await asyncio.gather(*(self._call("trigger", schedule_id, "POST", path) for _ in range(2)))

    async def _backfill(self, _dice: random.Random, schedule_id: str) -> None:
        now = datetime.now(UTC)
        span = {"from": (now - timedelta(seconds=60)).isoformat(), "to": (now - timedelta(seconds=2)).isoformat()}
        await self._call("backfill", schedule_id, "POST", f"/schedules/{schedule_id}/backfill", json=span)

    async def _sleep(self, dice: random.Random, schedule_id: str) -> None:
        try:
            await asyncio.to_thread(send_to_sleep, self._database_url, schedule_id, dice.choice((2, 5, 20)))
        except AWAY_OR_BUSY:
            return

    async def _look(self, _dice: random.Random, schedule_id: str) -> None:
        await self._look_up(f"/schedules/{schedule_id}/runs", {})

    # How it is asked

    async def _make_project(self, number: int) -> str:
        made, _ = await self._client.until_answered("POST", "/projects", json={"name": f"storm {number}"})
        project_id = str(made.json()["project_id"])
        items = [{"actor": "probe", "payload": {"seconds": 0.1}, "title": f"item {each}"} for each in range(ITEMS)]
        await self._client.until_answered("POST", f"/projects/{project_id}/items", json={"items": items})
        return project_id

    async def _living(self) -> bool:
        found = await self._look_up("/tasks", {"status": LIVING, "limit": "1"})
        return found is None or bool(found)

    async def _look_up(self, path: str, query: dict[str, Any]) -> list[dict[str, Any]] | None:
        """None where nobody answers."""
        try:
            answer = await self._client.once("GET", path, params=query)
        except NoAnswer:
            return None
        return list(answer.json().get("items", []))

    async def _call(self, kind: str, about: str, method: str, path: str, **request: Any) -> Call:
        asked_at = time.time()
        answer, lost = await self._client.until_answered(method, path, **request)
        if answer.status_code not in EXPECTED:
            self._record.oddities.append(f"{kind} was answered with {answer.status_code}: {answer.text[:200]}")
        call = Call(kind, about, asked_at, time.time(), answer.status_code, lost)
        self._record.schedules.calls.append(call)
        return call
