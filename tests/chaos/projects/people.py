"""People with projects: they run, stop, edit and revive, often at the same time, and only know where the API is."""

import asyncio
import random
import time
from typing import Any

from tests.chaos.load.patient_client import NoAnswer, PatientClient
from tests.chaos.projects.deeds import Deed
from tests.chaos.projects.record import Call
from tests.chaos.record import Accepted, LimitChange, Record, Revived

FORCED_WITHIN_SECONDS = 4
"""Shorter than the client's own patience with one call."""
CLICKS = 4
LOOK_EVERY_SECONDS = 0.1
AGENTS_AT_ONCE = 5
EXPECTED = {200, 201, 202, 404, 409}


class People:
    """To be used on one event loop; everything asked and told is in the record."""

    def __init__(self, api_url: str, record: Record, dice: random.Random) -> None:
        self._record = record
        self._client = PatientClient([api_url], dice)
        self.projects: list[str] = []
        self._items: dict[str, list[str]] = {}

    async def close(self) -> None:
        await self._client.close()
        self._record.oddities += self._client.oddities

    async def let_agents_work(self) -> None:
        """More of them at once than a new installation allows."""
        asked_at = time.time()
        await self._client.until_answered("PATCH", "/providers/local", json={"limit": AGENTS_AT_ONCE})
        self._record.limit_changes.append(LimitChange("local", AGENTS_AT_ONCE, asked_at, time.time()))

    async def make(self, items: list[dict[str, Any]], **fields: Any) -> str:
        """A project with its backlog. Tries that were heard without an answer leave a project that nobody knows."""
        name = f"storm {len(self.projects)}"
        body = {"name": name, "on_failure": "continue", **fields}
        made, _ = await self._client.until_answered("POST", "/projects", json=body)
        project_id = str(made.json()["project_id"])
        added, lost = await self._client.until_answered("POST", f"/projects/{project_id}/items", json={"items": items})
        known = added.json()["items"]
        if lost:
            page, _ = await self._client.until_answered("GET", f"/projects/{project_id}/items", params={"limit": "200"})
            known = page.json()["items"]
        self._items[project_id] = [item["item_id"] for item in known]
        self.projects.append(project_id)
        return project_id

    async def begin_a_long_loop(self, items: list[dict[str, Any]]) -> str:
        project_id = await self.make(items)
        self.projects.remove(project_id)
        self._record.projects.long_loops.append(project_id)
        await self.call("loop", project_id, "POST", "/run", json={"mode": "loop"}, is_repeated=True)
        return project_id

    async def do(self, deed: Deed) -> None:
        project_id, dice = self.projects[deed.project], random.Random(deed.dice)
        await getattr(self, f"_{deed.kind.replace('-', '_')}")(project_id, dice)

    # Each kind of deed

    async def _run(self, project_id: str, dice: random.Random) -> None:
        body = {"item_id": dice.choice(self._items[project_id])} if dice.random() < 0.3 else {}
        await self.call("run", project_id, "POST", "/run", json=body, is_repeated=True)

    async def _loop(self, project_id: str, _dice: random.Random) -> None:
        await self.call("loop", project_id, "POST", "/run", json={"mode": "loop"}, is_repeated=True)

    async def _press(self, project_id: str, dice: random.Random) -> None:
        mode = dice.choice(["single", "loop"])
        presses = [
            self.call("loop" if mode == "loop" else "run", project_id, "POST", "/run", json={"mode": mode})
            for _ in range(CLICKS)
        ]
        await asyncio.gather(*presses)

    async def _edit(self, project_id: str, dice: random.Random) -> None:
        await self._change(project_id, dice, "edit", json={"priority": dice.randint(0, 3)})

    async def _reorder(self, project_id: str, dice: random.Random) -> None:
        await self._change(project_id, dice, "reorder", json={"before": dice.choice(self._items[project_id])})

    async def _change(self, project_id: str, dice: random.Random, kind: str, **request: Any) -> None:
        item_id = dice.choice(self._items[project_id])
        await self.call(
            kind, project_id, "PATCH", f"/items/{item_id}", about=item_id, is_repeated=True, odd_is_fine=True, **request
        )

    async def _skip(self, project_id: str, dice: random.Random) -> None:
        item_id = dice.choice(self._items[project_id])
        await self.call("skip", project_id, "POST", f"/items/{item_id}/skip", about=item_id, is_repeated=True)

    async def _requeue(self, project_id: str, dice: random.Random) -> None:
        """What has been run, if there is any."""
        query = {"state": ["done", "failed", "skipped"], "limit": "200"}
        ended = await self._look_up(f"/projects/{project_id}/items", query) or [{"item_id": self._items[project_id][0]}]
        for item in dice.sample(ended, min(len(ended), 3)):
            item_id = item["item_id"]
            await self.call("requeue", project_id, "POST", f"/items/{item_id}/requeue", about=item_id, is_repeated=True)

    async def _stop(self, project_id: str, _dice: random.Random) -> None:
        await self.call("stop", project_id, "POST", "/queue/stop", is_repeated=True)

    async def _force_stop(self, project_id: str, _dice: random.Random) -> None:
        path = f"/queue/force-stop?wait={FORCED_WITHIN_SECONDS}"
        await self.call("force-stop", project_id, "POST", path, is_repeated=True)

    async def _look(self, project_id: str, _dice: random.Random) -> None:
        await self.call("look", project_id, "GET", "/queue/status")

    async def _revive(self, project_id: str, dice: random.Random) -> None:
        runs = await self._look_up(f"/projects/{project_id}/runs", {"limit": "50"})
        dead = [run["task_id"] for run in runs if run["state"] in {"dead", "cancelled"}]
        if dead:
            task_id = dice.choice(dead)
            call = await self.call("revive", project_id, "POST", f"/tasks/{task_id}/retry", about=task_id, is_task=True)
            if call.may_have_been_heard:
                self._record.revived.append(Revived(task_id, call.done_at))

    async def _bulk(self, project_id: str, _dice: random.Random) -> None:
        body = {"action": "retry", "filter": {"project_id": project_id, "status": ["dead"]}}
        await self.call("bulk", project_id, "POST", "/tasks/bulk", is_task=True, json=body)

    async def _bear(self, project_id: str, dice: random.Random) -> None:
        """A child of what runs, of which a force-stop has to know. A parent that is gone by then refuses it."""
        status = await self._status(project_id)
        if status is None or status["current_task_id"] is None:
            return
        mark = f"mark-child-{dice.getrandbits(60):x}"
        body = {
            "actor": "probe",
            "payload": {"seconds": 3, "result": mark},
            "parent_task_id": status["current_task_id"],
        }
        headers = {"Idempotency-Key": mark}
        answer, _ = await self._client.until_answered("POST", "/tasks", json=body, headers=headers)
        if answer.status_code in {200, 201}:
            task_id = str(answer.json()["task_id"])
            self._record.accepted[task_id] = Accepted(task_id, "probe", "probe", time.time(), mark)

    async def until_claimed(self, project_id: str) -> None:
        """Until a worker has its run's task."""
        status = await self._status(project_id)
        while status is None or not status["counts"]["running"]:
            await asyncio.sleep(LOOK_EVERY_SECONDS)
            status = await self._status(project_id)

    async def _status(self, project_id: str) -> dict[str, Any] | None:
        try:
            answer = await self._client.once("GET", f"/projects/{project_id}/queue/status")
        except NoAnswer:
            return None
        return answer.json() if answer.status_code == 200 else None

    async def _look_up(self, path: str, query: dict[str, Any]) -> list[dict[str, Any]]:
        try:
            answer = await self._client.once("GET", path, params=query)
        except NoAnswer:
            return []
        return list(answer.json().get("items", []))

    async def call(
        self,
        kind: str,
        project_id: str,
        method: str,
        path: str,
        *,
        about: str | None = None,
        is_repeated: bool = False,
        is_task: bool = False,
        odd_is_fine: bool = False,
        **request: Any,
    ) -> Call:
        """Once, or until it is answered: then an earlier try may have been heard, and the record says so."""
        asked_at, status, lost, said = time.time(), None, 0, {}
        where = path if is_task else f"/projects/{project_id}{path}"
        try:
            if is_repeated:
                answer, lost = await self._client.until_answered(method, where, **request)
            else:
                answer = await self._client.once(method, where, **request)
            status, said = answer.status_code, answer.json()
            if status not in EXPECTED and not odd_is_fine:
                self._record.oddities.append(f"{kind} was answered with {status}: {answer.text[:200]}")
        except NoAnswer:
            pass
        call = Call(project_id, kind, asked_at, time.time(), status, lost, said, about)
        self._record.projects.calls.append(call)
        return call
