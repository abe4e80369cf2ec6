"""People with endpoints: they make, edit, disable, enable and delete them while tasks end, over links that break."""

import asyncio
import random
import time
from typing import Any

from tests.chaos.load.patient_client import NoAnswer, PatientClient
from tests.chaos.record import Accepted, Record, Revived
from tests.chaos.webhooks.books import Books
from tests.chaos.webhooks.deeds import ENDPOINTS, SUBSCRIPTIONS, TAG, UNTOUCHED, Deed, a_task
from tests.chaos.webhooks.record import Call

EXPECTED = {200, 201, 202, 204, 404, 409}
LOOK_EVERY_SECONDS = 0.5
IN_ORDER = 12
LIVING = ["blocked", "queued", "running", "retrying"]


class People:
    """To be used on one event loop; everything asked and told is in the record, and every secret with the receiver."""

    def __init__(self, api_url: str, receiver_url: str, books: Books, record: Record, dice: random.Random) -> None:
        self._record, self._dice, self._books = record, dice, books
        self._client = PatientClient([api_url], dice)
        self._receiver_url = receiver_url
        self._touched: list[str] = []
        self._untouched: list[str] = []
        self._made = 0

    async def close(self) -> None:
        await self._client.close()
        self._record.oddities += self._client.oddities

    async def make_all(self) -> None:
        for kind, fields in ENDPOINTS:
            (self._untouched if self._made < UNTOUCHED else self._touched).append(await self._make(kind, fields))
        self.named_url = f"{self._receiver_url}/named-{self._made}"
        self._touched.append(await self._make("named", {"events": []}))

    async def submit(self, number: int, dice: random.Random, **fields: Any) -> str | None:
        mark = f"mark-told-{number}-{dice.getrandbits(40):x}"
        body = {**a_task(dice, mark, self.named_url), **fields}
        answer, _ = await self._client.until_answered("POST", "/tasks", json=body, headers={"Idempotency-Key": mark})
        if answer.status_code not in {200, 201}:
            self._record.oddities.append(f"a task was answered with {answer.status_code}: {answer.text[:300]}")
            return None
        task_id = str(answer.json()["task_id"])
        provider = answer.json().get("provider", "probe")
        self._record.accepted[task_id] = Accepted(task_id, body["actor"], provider, time.time(), mark)
        return task_id

    async def do(self, deed: Deed) -> None:
        await getattr(self, f"_{deed.kind}")(random.Random(deed.dice))

    async def bring_to_an_end(self) -> None:
        """All are well from now on, and enabled until nothing waits; then one is released once more, in order."""
        self._books.mend()
        await self._nothing_waits()
        await self._release_in_order()
        await self._nothing_waits()

    # Each kind of deed

    async def _edit(self, dice: random.Random) -> None:
        """What has to go with it waits for none: where it is now, the receiver verifies as well."""
        webhook_id = dice.choice(self._touched)
        change: dict[str, Any] = {"events": dice.choice(SUBSCRIPTIONS)}
        if dice.random() < 0.3 and not self._is_the_named(webhook_id):
            path = f"/moody-{self._made}"
            self._made += 1
            for secret in self._books.secrets()[self._record.webhooks.paths[webhook_id]]:
                self._books.share(path, secret)
            change["url"] = f"{self._receiver_url}{path}"
            self._record.webhooks.paths[webhook_id] = path
        await self._call("edit", webhook_id, "PATCH", f"/webhooks/{webhook_id}", json=change)

    async def _disable(self, dice: random.Random) -> None:
        webhook_id = dice.choice(self._touched)
        await self._call("disable", webhook_id, "POST", f"/webhooks/{webhook_id}/disable")

    async def _enable(self, dice: random.Random) -> None:
        await self._release(dice.choice(self._touched), "none" if dice.random() < 0.15 else "held")

    async def _replace(self, dice: random.Random) -> None:
        """One that is found not to be there any more was deleted by an earlier try."""
        webhook_id = dice.choice(self._touched)
        if self._is_the_named(webhook_id):
            return
        self._touched.remove(webhook_id)
        await self._call("delete", webhook_id, "DELETE", f"/webhooks/{webhook_id}")
        self._touched.append(await self._make(*dice.choice(ENDPOINTS[UNTOUCHED:])))

    async def _rotate(self, dice: random.Random) -> None:
        await self._new_secret(dice.choice([*self._touched, *self._untouched]))

    async def _test(self, dice: random.Random) -> None:
        webhook_id = dice.choice(self._touched)
        await self._call("test", webhook_id, "POST", f"/webhooks/{webhook_id}/test")

    async def _redeliver(self, dice: random.Random) -> None:
        found = await self._look_up(f"/webhooks/{dice.choice(self._touched)}/deliveries", {"limit": "50"}) or []
        for delivery in dice.sample(found, min(len(found), 2)):
            delivery_id = delivery["delivery_id"]
            await self._call("redeliver", delivery_id, "POST", f"/deliveries/{delivery_id}/redeliver")

    async def _revive(self, dice: random.Random) -> None:
        dead = await self._look_up("/tasks", {"status": ["dead", "cancelled"], "tag": TAG, "limit": "200"}) or []
        for task in dice.sample(dead, min(len(dead), 6)):
            call = await self._call("revive", task["task_id"], "POST", f"/tasks/{task['task_id']}/retry")
            if call.status == 200 or call.lost:
                self._record.revived.append(Revived(task["task_id"], call.done_at))

    async def _cancel(self, dice: random.Random) -> None:
        task_id = await self.submit(dice.getrandbits(30), dice, delay_seconds=2)
        if task_id is not None:
            await self._call("cancel-task", task_id, "POST", f"/tasks/{task_id}/cancel")

    async def _look(self, dice: random.Random) -> None:
        await self._look_up("/webhooks", {})
        await self._look_up(f"/webhooks/{dice.choice(self._touched)}/deliveries", {})

    # How it is done

    async def _make(self, kind: str, fields: dict[str, Any]) -> str:
        """It subscribes when its receiver knows its secret, and not before: an answer that was lost had it."""
        path = f"/{kind}-{self._made}"
        self._made += 1
        url = f"{self._receiver_url}{path}"
        answer, _ = await self._client.until_answered("POST", "/webhooks", json={"url": url, **fields, "events": []})
        if answer.status_code == 201:
            webhook_id = str(answer.json()["webhook_id"])
            self._record.webhooks.paths[webhook_id] = path
            self._books.share(path, answer.json()["secret"])
        else:
            listed, _ = await self._client.until_answered("GET", "/webhooks", params={"limit": "500"})
            webhook_id = next(each["webhook_id"] for each in listed.json()["items"] if each["url"] == url)
            self._record.webhooks.paths[webhook_id] = path
            await self._new_secret(webhook_id)
        change = {"events": fields["events"]}
        await self._client.until_answered("PATCH", f"/webhooks/{webhook_id}", json=change)
        return webhook_id

    async def _new_secret(self, webhook_id: str) -> None:
        """Said to the receiver before anything else is: until then the one before signs as well."""
        path = self._record.webhooks.paths[webhook_id]
        asked_at = time.time()
        answer, lost = await self._client.until_answered("POST", f"/webhooks/{webhook_id}/rotate")
        if answer.status_code == 200:
            self._books.share(path, answer.json()["secret"])
            moved = self._record.webhooks.paths[webhook_id]
            if moved != path:
                self._books.share(moved, answer.json()["secret"])
        call = Call("rotate", webhook_id, asked_at, time.time(), answer.status_code, lost)
        self._record.webhooks.calls.append(call)

    async def _release(self, webhook_id: str, replay: str) -> None:
        await self._call("enable", webhook_id, "POST", f"/webhooks/{webhook_id}/enable", json={"replay": replay})

    async def _nothing_waits(self) -> None:
        while True:
            waiting = 0
            for webhook_id in [*self._untouched, *self._touched]:
                path = f"/webhooks/{webhook_id}/deliveries"
                found = [await self._look_up(path, {"state": each, "limit": "1"}) for each in ("waiting", "held")]
                if found != [[], []]:
                    waiting += 1
                    document = await self._once(f"/webhooks/{webhook_id}")
                    if document is not None and document.get("state") != "enabled":
                        await self._release(webhook_id, "held")
            if not waiting and not await self._living():
                return
            await asyncio.sleep(LOOK_EVERY_SECONDS)

    async def _living(self) -> bool:
        found = await self._look_up("/tasks", {"status": LIVING, "tag": TAG, "limit": "1"})
        return found is None or bool(found)

    async def _release_in_order(self) -> None:
        webhook_id = self._untouched[0]
        await self._call("disable", webhook_id, "POST", f"/webhooks/{webhook_id}/disable")
        for number in range(IN_ORDER):
            await self.submit(number, self._dice, actor="tell", payload={"mark": f"in order {number}"}, tags=[TAG])
        await self._all_have_ended()
        await self._release(webhook_id, "held")

    async def _all_have_ended(self) -> None:
        while True:
            if not await self._living():
                return
            await asyncio.sleep(LOOK_EVERY_SECONDS)

    def _is_the_named(self, webhook_id: str) -> bool:
        return self.named_url.endswith(self._record.webhooks.paths[webhook_id])

    async def _once(self, path: str) -> dict[str, Any] | None:
        try:
            answer = await self._client.once("GET", path)
        except NoAnswer:
            return None
        found: dict[str, Any] = answer.json()
        return found

    async def _look_up(self, path: str, query: dict[str, Any]) -> list[dict[str, Any]] | None:
        """None where nobody answers."""
        try:
            answer = await self._client.once("GET", path, params=query)
        except NoAnswer:
            return None
        return list(answer.json().get("items", []))

    async def _call(self, kind: str, about: str, method: str, path: str, **request: Any) -> Call:
        """Until it is answered: then an earlier try may have been heard, and the record says so."""
        asked_at = time.time()
        answer, lost = await self._client.until_answered(method, path, **request)
        if answer.status_code not in EXPECTED:
            self._record.oddities.append(f"{kind} was answered with {answer.status_code}: {answer.text[:200]}")
        call = Call(kind, about, asked_at, time.time(), answer.status_code, lost)
        self._record.webhooks.calls.append(call)
        return call
