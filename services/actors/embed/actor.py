"""Embeddings: one call for the vectors of a job's events, or for that of a text."""

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import httpx

from windlass.actors import actor
from windlass.services.actors.worker.context.async_context import AsyncAttempt
from windlass.services.actors.worker.metrics import provider_call
from windlass.shared.actors.payloads import EmbedPayload
from windlass.shared.errors import ContentRejected, InvalidInput, NotFound
from windlass.shared.hashing import HASH_PROVIDER, hashed, unit
from windlass.shared.providers.base import Embedded
from windlass.shared.providers.http.addresses import Allowances
from windlass.shared.providers.http.network import open_client
from windlass.shared.providers.registry import embedding_provider
from windlass.shared.settings import Settings
from windlass.shared.store.memory import jobs, models, questions

REFUSALS = (ContentRejected, InvalidInput)
"""What may be one text's fault."""


@actor
class Embed:
    """Made once per process, since reading the certificates that are trusted takes a while."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._allowances = Allowances.of(settings)
        self._tls = httpx.create_ssl_context(trust_env=False)

    async def __call__(self, context: AsyncAttempt, payload: EmbedPayload) -> dict[str, Any]:
        if payload.job_id is not None:
            return await self._do_job(context, payload.job_id)
        if payload.text is None:
            raise InvalidInput("name a job_id or a text")
        if payload.model_id is not None:
            return await self._answer(context, payload.model_id, payload.text)
        return await self._embed(context, payload.text)

    async def _do_job(self, context: AsyncAttempt, job_id: UUID) -> dict[str, Any]:
        """What the provider refuses is halved until what it means stands alone."""
        job = await context.ask(jobs.of_model, job_id)
        texts = [] if job is None else await context.ask(jobs.texts, job)
        if job is None or not texts:
            return {"embedded": 0}
        try:
            vectors = await self._vectors(context, job.model, job.dimensions, [each.text for each in texts])
        except REFUSALS:
            if len(job.event_ids) == 1:
                raise
            await context.ask(jobs.split, context.task, job_id)
            return {"embedded": 0, "split": True}
        await context.ask(jobs.keep_vectors, job.model_id, [each.event_id for each in texts], vectors)
        return {"embedded": len(texts)}

    async def _answer(self, context: AsyncAttempt, model_id: UUID, question: str) -> dict[str, Any]:
        model = await context.ask(models.get, model_id)
        if model is None:
            raise NotFound("the model is gone")
        (vector,) = await self._vectors(context, model.name, model.dimensions, [question])
        await context.ask(questions.keep, model_id, question, vector)
        return {"embedded": 1}

    async def _embed(self, context: AsyncAttempt, text: str) -> dict[str, Any]:
        """For who wants the vector itself: of the active model, if it is this provider's, else of its newest."""
        model = await context.ask(models.of_provider, context.task.provider)
        if model is None:
            raise NotFound(f"no embedding model is of {context.task.provider}")
        (vector,) = await self._vectors(context, model.name, model.dimensions, [text])
        return {"model": model.name, "vector": vector}

    async def _vectors(
        self, context: AsyncAttempt, model: str, dimensions: int, texts: Sequence[str]
    ) -> list[list[float]]:
        """Of unit length: then a product is all it takes to compare two."""
        provider = context.task.provider
        if provider == HASH_PROVIDER:
            # Arithmetic: on a thread it holds up nobody else on the loop.
            return await asyncio.to_thread(lambda: [hashed(text, dimensions) for text in texts])
        await context.rate()
        with provider_call(provider, "embed"):
            embedded = await self._call(provider, model, texts)
        price = self._settings.providers[provider].price_per_call
        context.usage(cost_usd=price if embedded.cost is None else embedded.cost, prompt_tokens=embedded.prompt_tokens)
        widths = {len(vector) for vector in embedded.vectors}
        if widths != {dimensions}:
            # Nobody's text is at fault, and halving would not help.
            told = ", ".join(map(str, sorted(widths)))
            raise NotFound(f"{provider}'s {model} makes vectors of {told} dimensions, and {dimensions} were declared")
        return await asyncio.to_thread(lambda: [unit(list(vector)) for vector in embedded.vectors])

    async def _call(self, provider: str, model: str, texts: Sequence[str]) -> Embedded:
        seconds = self._settings.providers[provider].call_timeout_seconds
        async with open_client(self._allowances, timeout_seconds=seconds, tls=self._tls) as http:
            return await embedding_provider(self._settings, provider, http).embed(texts, model=model)
