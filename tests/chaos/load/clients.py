"""The mixed load of a storm: many clients, careful and careless, on one thread, who only know where the API is."""

import asyncio
import random
import threading
import time
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any

from tests.chaos.load.follower import Follower, ManyFollower
from tests.chaos.load.patient_client import NoAnswer, PatientClient
from tests.chaos.load.wishes import Kinds, Wish, plan
from tests.chaos.record import Accepted, Record, Revived
from tests.support.installation import KEY

ENDED = {"completed", "dead", "cancelled"}
MANY_FOLLOWERS = 2
LISTS_EVERY_SECONDS = 2.0
LOOKS_EVERY_SECONDS = 1.5


class Load:
    """`start()`, and when the storm is over `finish()`; everything seen is in the record."""

    def __init__(
        self,
        api_url: str | Sequence[str],
        record: Record,
        dice: random.Random,
        *,
        tasks: int,
        seconds: float,
        key: str = KEY,
        wishes: Sequence[Wish] | None = None,
        followers: int = MANY_FOLLOWERS,
    ) -> None:
        """`followers` read the stream of all tasks together."""
        self._api_urls = [api_url] if isinstance(api_url, str) else list(api_url)
        self._record = record
        self._dice = dice
        self._tasks = tasks
        self._seconds = seconds
        self._key = key
        self._wishes = wishes
        self._followers = followers
        self._ids: dict[int, asyncio.Future[str | None]] = {}
        self._many: list[ManyFollower] = []
        self._stop = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self._failure: BaseException | None = None

    @property
    def submitted(self) -> int:
        """How many tasks the api has said yes to so far."""
        return len(self._record.accepted)

    @property
    def is_over(self) -> bool:
        """Every client has seen the end of what it asked for."""
        return not self._thread.is_alive()

    def start(self) -> None:
        self._thread.start()

    def finish(self, within: float) -> bool:
        """Waits for every client to have seen the end of what it asked for; false when some had to be sent home."""
        self._thread.join(within)
        came_to_its_end = not self._thread.is_alive()
        if not came_to_its_end:
            self._record.oddities.append("some clients were sent home before they had seen the end of what they wanted")
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(20)
        if self._failure is not None:
            raise self._failure
        return came_to_its_end

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._everybody())
        except BaseException as error:  # noqa: BLE001 - told to whoever waits in `finish`
            self._failure = error
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _everybody(self) -> None:
        self._client = PatientClient(self._api_urls, self._dice, self._key)
        work = asyncio.create_task(self._work())
        stopped = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (work, stopped):
                task.cancel()
            results = await asyncio.gather(work, stopped, return_exceptions=True)
            await self._client.close()
            self._record.oddities += self._client.oddities
        if isinstance(results[0], Exception):
            raise results[0]

    async def _work(self) -> None:
        wishes = self._wishes
        if wishes is None:
            wishes = plan(self._dice, tasks=self._tasks, seconds=self._seconds, kinds=await self._kinds())
        self._ids = {wish.number: self._loop.create_future() for wish in wishes}
        self._began = self._loop.time()
        self._many = [
            ManyFollower(self._api_urls, self._record, self._new_dice(), self._mark, self._key)
            for _ in range(self._followers)
        ]
        following = [asyncio.create_task(each.follow()) for each in self._many]
        listing = asyncio.create_task(self._ask_for_lists())
        batches: dict[int, list[Wish]] = {}
        for wish in wishes:
            if wish.batch is not None:
                batches.setdefault(wish.batch, []).append(wish)
        alone: list[Coroutine[Any, Any, None]] = [self._submit(wish) for wish in wishes if wish.batch is None]
        together = [self._submit_batch(members) for members in batches.values()]
        try:
            await _all_of([*alone, *together])
            for each in self._many:
                each.may_end()
            await asyncio.gather(*following)
        finally:
            for task in (*following, listing):
                task.cancel()
            await asyncio.gather(*following, listing, return_exceptions=True)

    def _new_dice(self) -> random.Random:
        return random.Random(self._dice.random())

    async def _kinds(self) -> Kinds:
        answer, _ = await self._client.until_answered("GET", "/providers")
        names = [each["name"] for each in answer.json()["items"] if each["actor"] == "probe"]
        return Kinds(probe_providers=sorted(names, key=lambda name: (name != "probe", name)))

    # Submitting

    async def _submit(self, wish: Wish) -> None:
        await self._until(wish.at)
        body = {**wish.body, "depends_on": await self._parents(wish)}
        if wish.is_careless:
            await self._submit_carelessly(wish, body)
            return
        request: dict[str, Any] = {"json": body, "headers": {"Idempotency-Key": wish.mark}}
        answer, _ = await self._client.until_answered("POST", "/tasks", **request)
        if answer.status_code not in {200, 201}:
            self._refused(wish, answer.status_code, answer.text)
            return
        task_id = answer.json()["task_id"]
        self._accept(wish, task_id)
        if wish.is_repeated:
            again, _ = await self._client.until_answered("POST", "/tasks", **request)
            if again.status_code != 200 or again.json()["task_id"] != task_id:
                words = f"key {wish.mark} gave task {task_id} first and then {again.status_code} {again.text[:100]}"
                self._record.broken_words.append((task_id, words))
        await self._live_with(wish, task_id)

    async def _submit_carelessly(self, wish: Wish, body: dict[str, Any]) -> None:
        try:
            answer = await self._client.once("POST", "/tasks", json=body)
        except NoAnswer:
            self._ids[wish.number].set_result(None)
            return
        if answer.status_code != 201:
            self._refused(wish, answer.status_code, answer.text)
            return
        task_id = answer.json()["task_id"]
        self._accept(wish, task_id)
        await self._live_with(wish, task_id)

    async def _submit_batch(self, members: list[Wish]) -> None:
        await self._until(members[0].at)
        body = {"tasks": [wish.body for wish in members]}
        headers = {"Idempotency-Key": f"batch-{members[0].mark}"}
        answer, _ = await self._client.until_answered("POST", "/tasks/batch", json=body, headers=headers)
        if answer.status_code not in {200, 201}:
            for wish in members:
                self._refused(wish, answer.status_code, answer.text)
            return
        ids = [each["task_id"] for each in answer.json()["tasks"]]
        for wish, task_id in zip(members, ids, strict=True):
            self._accept(wish, task_id)
        await _all_of([self._live_with(wish, task_id) for wish, task_id in zip(members, ids, strict=True)])

    async def _until(self, at: float) -> None:
        await asyncio.sleep(max(0.0, self._began + at - self._loop.time()))

    async def _parents(self, wish: Wish) -> list[str]:
        ids = [await self._ids[number] for number in wish.parents]
        return [task_id for task_id in ids if task_id is not None]

    def _accept(self, wish: Wish, task_id: str) -> None:
        body = wish.body
        provider = body.get("provider") or {"summarize": "openrouter", "agent": "local"}.get(body["actor"], "probe")
        self._record.accepted[task_id] = Accepted(task_id, body["actor"], provider, time.time(), wish.mark)
        self._ids[wish.number].set_result(task_id)

    def _refused(self, wish: Wish, status: int, text: str) -> None:
        self._record.oddities.append(f"{wish.mark} was refused with {status}: {text[:300]}")
        self._ids[wish.number].set_result(None)

    async def _mark(self) -> str:
        """A task that ends by itself, for the clients of the many-task stream."""
        number = self._dice.getrandbits(60)
        wish = Wish(-1 - number, 0, f"mark-many-{number:x}", {"actor": "probe"})
        wish.body["payload"] = {"result": wish.mark}
        self._ids[wish.number] = self._loop.create_future()
        request: dict[str, Any] = {"json": wish.body, "headers": {"Idempotency-Key": wish.mark}}
        answer, _ = await self._client.until_answered("POST", "/tasks", **request)
        task_id = str(answer.raise_for_status().json()["task_id"])
        self._accept(wish, task_id)
        return task_id

    # What a client does besides

    async def _live_with(self, wish: Wish, task_id: str) -> None:
        doings: list[Coroutine[Any, Any, None]] = []
        if wish.is_followed:
            doings.append(Follower(self._api_urls, self._record, self._new_dice(), task_id, self._key).follow())
        if wish.cancel_after is not None:
            doings.append(self._cancel(wish, task_id))
        elif wish.is_revived:
            doings.append(self._revive(task_id))
        await _all_of(doings)

    async def _cancel(self, wish: Wish, task_id: str) -> None:
        await asyncio.sleep(wish.cancel_after or 0)
        answer, _ = await self._client.until_answered("POST", f"/tasks/{task_id}/cancel")
        if answer.status_code in {200, 202}:
            self._record.cancelled.append(task_id)
        elif answer.status_code != 409:
            self._record.oddities.append(f"cancelling {task_id} was answered with {answer.status_code}")
        if wish.is_revived:
            await self._revive(task_id)

    async def _revive(self, task_id: str) -> None:
        """Waits for its end; what has died or was cancelled is given one more life."""
        while True:
            answer, _ = await self._client.until_answered("GET", f"/tasks/{task_id}")
            if answer.status_code == 404:
                self._record.broken_words.append((task_id, "an accepted task is not found"))
                return
            if (status := answer.json()["status"]) in ENDED:
                break
            await asyncio.sleep(LOOKS_EVERY_SECONDS)
        if status == "completed":
            return
        answer, tries = await self._client.until_answered("POST", f"/tasks/{task_id}/retry")
        # After an answer that was lost, 409 says that the first request was heard.
        if answer.status_code == 200 or tries:
            self._record.revived.append(Revived(task_id, time.time()))

    async def _ask_for_lists(self) -> None:
        while True:
            filters = self._dice.choice(
                ({}, {"status": "running"}, {"tag": "storm", "limit": "100"}, {"status": "dead"})
            )
            with suppress(NoAnswer):
                answer = await self._client.once("GET", "/tasks", params=filters)
                if answer.status_code == 200 and (cursor := answer.json().get("next_cursor")):
                    await self._client.once("GET", "/tasks", params={**filters, "cursor": cursor})
            await asyncio.sleep(LISTS_EVERY_SECONDS)


async def _all_of(doings: Sequence[Coroutine[Any, Any, None]]) -> None:
    """All at once; when one of them cannot go on, or we are sent home, the others stop too."""
    async with asyncio.TaskGroup() as group:
        for doing in doings:
            group.create_task(doing)
