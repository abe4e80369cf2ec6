"""Memory for asyncio; what is said stands in `calls.py`."""

from collections.abc import AsyncIterator
from typing import Unpack

from windlass.client.memory import calls
from windlass.client.memory.documents import AgentEvent, EmbeddingJob, EmbeddingModel, Found, JobState
from windlass.client.memory.options import EventFilter, EventId, JobId, ModelId, Scope
from windlass.client.speaking import AsyncSpeaker


class AsyncMemory:
    """What agents did, found again: `client.memory`, with `await`."""

    def __init__(self, client: AsyncSpeaker) -> None:
        self._client = client

    async def search(self, question: str, *, limit: int = 10, **scope: Unpack[Scope]) -> Found:
        """The events that are nearest to a question, by their words and by their vectors: only what the key may see."""
        return await self._client.perform(calls.search(question, limit, scope))

    def events(self, *, page_size: int = 200, **filters: Unpack[EventFilter]) -> AsyncIterator[AgentEvent]:
        """What agents did, newest first, page after page."""
        return self._client.items_of(calls.events(filters, page_size))

    async def event(self, event_id: EventId) -> AgentEvent:
        return await self._client.perform(calls.event(event_id))

    async def forget(self, event_id: EventId) -> None:
        """Takes an event out of the memory, with its vectors; its task and its history stay."""
        await self._client.perform(calls.forget(event_id))

    async def models(self) -> tuple[EmbeddingModel, ...]:
        """The models that vectors are of; questions are asked in the active one's."""
        return (await self._client.perform(calls.models())).items

    async def add_model(
        self, name: str, *, provider: str, dimensions: int, activate_when_filled: bool = False
    ) -> EmbeddingModel:
        """New events get its vectors from now on, and those that are there by and by, newest first; then it takes over
        by itself, or when somebody activates it."""
        return await self._client.perform(
            calls.add_model(name, provider, dimensions, activate_when_filled=activate_when_filled)
        )

    async def activate_model(self, model_id: ModelId) -> EmbeddingModel:
        """From here on questions are asked in its vectors; the one before is kept, and gets no more."""
        return await self._client.perform(calls.activate_model(model_id))

    async def delete_model(self, model_id: ModelId) -> None:
        """With all its vectors and jobs; not the active one."""
        await self._client.perform(calls.delete_model(model_id))

    def jobs(self, *, state: JobState | None = None, page_size: int = 200) -> AsyncIterator[EmbeddingJob]:
        """Jobs that bring vectors to up to 64 events each, newest first."""
        return self._client.items_of(calls.jobs(state, page_size))

    async def retry_job(self, job_id: JobId) -> EmbeddingJob:
        """A failed one waits again."""
        return await self._client.perform(calls.retry_job(job_id))
