"""The people of a storm: they submit workflows, are asked, let them go on, revive and cancel, over links that break."""

import asyncio
import random
import time
from typing import Any

from tests.chaos.load.patient_client import NoAnswer, PatientClient
from tests.chaos.record import Accepted, Record, Revived
from tests.chaos.workflows.deeds import Deed
from tests.chaos.workflows.graphs import Graph
from tests.chaos.workflows.record import Call

EXPECTED = {200, 201, 202, 404, 409}
LOOK_EVERY_SECONDS = 0.5
MODES = ("none", "failed", "failed-and-downstream")


class People:
    """To be used on one event loop; everything asked and told is in the record."""

    def __init__(self, api_url: str, record: Record, dice: random.Random) -> None:
        self._record = record
        self._dice = dice
        self._client = PatientClient([api_url], dice)
        self._tasks: dict[str, list[str]] = {}
        """By workflow its tasks, but for those of lists."""

    async def close(self) -> None:
        await self._client.close()
        self._record.oddities += self._client.oddities

    async def make(self, number: int, dice: random.Random) -> None:
        mark = f"mark-flow-{number}-{dice.getrandbits(40):x}"
        elsewhere = dice.choice([task for tasks in self._tasks.values() for task in tasks]) if self._tasks else None
        body = Graph(dice, mark).body(number, elsewhere)
        answer, _ = await self._client.until_answered(
            "POST", "/workflows", json=body, headers={"Idempotency-Key": mark}
        )
        if answer.status_code not in {200, 201}:
            self._record.oddities.append(f"a workflow was answered with {answer.status_code}: {answer.text[:300]}")
            return
        workflow = answer.json()
        self._record.workflows.made.append(workflow["workflow_id"])
        ids = {node["key"]: node["task_id"] for node in workflow["nodes"] if node["task_id"]}
        self._tasks[workflow["workflow_id"]] = list(ids.values())
        for task in body["tasks"]:
            said = task["payload"].get("result")
            if task["key"] in ids and isinstance(said, str):
                task_id = ids[task["key"]]
                self._record.accepted[task_id] = Accepted(task_id, "probe", "probe", time.time(), said)

    async def do(self, deed: Deed) -> None:
        await getattr(self, f"_{deed.kind.replace('-', '_')}")(random.Random(deed.dice))

    async def bring_to_an_end(self) -> None:
        """Everybody who is asked says something, what stands goes on or is given up: until all have ended."""
        while True:
            running, standing = await self._workflows("running"), await self._workflows("escalated")
            if running == [] and standing == []:
                return
            for workflow_id in standing or ():
                await self._let_go_on(workflow_id, "none" if self._dice.random() < 0.7 else None)
            await self._decide(self._dice, all_of_them=True)
            await asyncio.sleep(LOOK_EVERY_SECONDS)

    # Each kind of deed

    async def _decide(self, dice: random.Random, *, all_of_them: bool = False) -> None:
        """Two people at the same time; what the second is told must be that somebody was there before."""
        asked = await self._look_up("/approvals", {"limit": "200"}) or []
        for task in asked if all_of_them else dice.sample(asked, min(len(asked), 8)):
            words = dice.choice([("approve", "approve"), ("approve", "approve"), ("approve", "reject")])
            path = f"/tasks/{task['task_id']}"
            await asyncio.gather(*(self._call(word, task["task_id"], f"{path}/{word}") for word in words))

    async def _resume(self, dice: random.Random) -> None:
        """Also what does not stand: that is refused."""
        standing = await self._workflows("escalated") or self._record.workflows.made
        for workflow_id in dice.sample(standing, min(len(standing), 4)):
            await self._let_go_on(workflow_id, dice.choice(MODES))

    async def _let_go_on(self, workflow_id: str, mode: str | None) -> None:
        if mode is None:
            await self._call("cancel", workflow_id, f"/workflows/{workflow_id}/cancel")
        else:
            await self._call("resume", workflow_id, f"/workflows/{workflow_id}/resume", json={"retry": mode})

    async def _cancel(self, dice: random.Random) -> None:
        if self._record.workflows.made:
            await self._let_go_on(dice.choice(self._record.workflows.made), None)

    async def _cancel_standing(self, dice: random.Random) -> None:
        if standing := await self._workflows("escalated"):
            await self._let_go_on(dice.choice(standing), None)

    async def _revive(self, dice: random.Random) -> None:
        """Of one workflow: what else has died in the same storm is others'."""
        if not self._record.workflows.made:
            return
        workflow_id = dice.choice(self._record.workflows.made)
        query = {"workflow_id": workflow_id, "status": ["dead", "cancelled"], "limit": "200"}
        dead = await self._look_up("/tasks", query)
        for task in dice.sample(dead or [], min(len(dead or []), 3)):
            call = await self._call("revive", task["task_id"], f"/tasks/{task['task_id']}/retry")
            if call.status == 200 or call.lost:
                self._record.revived.append(Revived(task["task_id"], call.done_at))

    async def _bulk(self, dice: random.Random) -> None:
        if self._record.workflows.made:
            workflow_id = dice.choice(self._record.workflows.made)
            body = {"action": "retry", "filter": {"workflow_id": workflow_id, "status": ["dead"]}}
            await self._call("bulk", workflow_id, "/tasks/bulk", json=body)

    async def _cancel_task(self, dice: random.Random) -> None:
        if self._tasks:
            task_id = dice.choice([task for tasks in self._tasks.values() for task in tasks])
            await self._call("cancel-task", task_id, f"/tasks/{task_id}/cancel")

    async def _join(self, dice: random.Random) -> None:
        """One more task, which waits for one of those that are there; a workflow that was given up takes none."""
        if not self._tasks:
            return
        workflow_id = dice.choice(list(self._tasks))
        mark = f"mark-late-{dice.getrandbits(60):x}"
        payload = {"result": mark, **({"outcome": "permanent", "fail_times": 1} if dice.random() < 0.2 else {})}
        body = {
            "actor": "probe",
            "workflow_id": workflow_id,
            "depends_on": [dice.choice(self._tasks[workflow_id])],
            "payload": payload,
        }
        answer, _ = await self._client.until_answered("POST", "/tasks", json=body, headers={"Idempotency-Key": mark})
        if answer.status_code in {200, 201}:
            task_id = str(answer.json()["task_id"])
            self._record.accepted[task_id] = Accepted(task_id, "probe", "probe", time.time(), mark)

    async def _look(self, dice: random.Random) -> None:
        if self._record.workflows.made:
            await self._look_up(f"/workflows/{dice.choice(self._record.workflows.made)}", {})

    # How it is asked

    async def _workflows(self, status: str) -> list[str] | None:
        """None where nobody answers."""
        found = await self._look_up("/workflows", {"status": status, "limit": "200"})
        return None if found is None else [each["workflow_id"] for each in found]

    async def _look_up(self, path: str, query: dict[str, Any]) -> list[dict[str, Any]] | None:
        try:
            answer = await self._client.once("GET", path, params=query)
        except NoAnswer:
            return None
        return list(answer.json().get("items", []))

    async def _call(self, kind: str, about: str, path: str, **request: Any) -> Call:
        """Until it is answered: then an earlier try may have been heard, and the record says so."""
        asked_at = time.time()
        answer, lost = await self._client.until_answered("POST", path, **request)
        if answer.status_code not in EXPECTED:
            self._record.oddities.append(f"{kind} was answered with {answer.status_code}: {answer.text[:200]}")
        call = Call(kind, about, asked_at, time.time(), answer.status_code, lost)
        self._record.workflows.calls.append(call)
        return call
