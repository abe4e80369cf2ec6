"""Waiting for work: an event ends it, time ends it, and being told to stop ends it whatever else happens."""

import asyncio

from windlass.shared.process.lifetime import until_set


async def keep_waiting(event: asyncio.Event) -> None:
    while True:
        await until_set(event, at_most_seconds=30)
        event.clear()


def test_told_to_stop_together_with_the_event_it_stops() -> None:
    async def scenario() -> None:
        event = asyncio.Event()
        waiting = asyncio.create_task(keep_waiting(event))
        await asyncio.sleep(0.01)
        event.set()
        await asyncio.sleep(0)  # the event has been heard inside, and nobody outside knows yet
        waiting.cancel()
        done, _ = await asyncio.wait({waiting}, timeout=20)
        assert done, "it was told to stop and waits on"
        assert waiting.cancelled()

    asyncio.run(scenario())


def test_it_returns_with_the_event_or_when_the_time_is_over() -> None:
    async def scenario() -> None:
        event = asyncio.Event()
        await until_set(event, at_most_seconds=0.01)
        assert not event.is_set()
        asyncio.get_running_loop().call_later(0.01, event.set)
        async with asyncio.timeout(60):
            await until_set(event, at_most_seconds=600)

    asyncio.run(scenario())
