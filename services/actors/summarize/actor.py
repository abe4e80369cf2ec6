"""Summaries: a text that fits goes to the model as it is, a longer one in parts and then as a whole."""

import json
from collections.abc import Callable, Sequence
from contextlib import aclosing
from hashlib import sha256
from typing import Any

import httpx

from windlass.actors import actor
from windlass.services.actors.summarize import prompts
from windlass.services.actors.summarize.splitting import split
from windlass.services.actors.worker.context.async_context import AsyncAttempt
from windlass.services.actors.worker.metrics import paid, provider_call
from windlass.shared.actors.payloads import SummarizePayload
from windlass.shared.errors import InvalidInput, ServiceUnavailable, Unauthorized
from windlass.shared.providers.base import Finished, Message
from windlass.shared.providers.http.addresses import Allowances
from windlass.shared.providers.http.network import open_client
from windlass.shared.providers.registry import chat_provider
from windlass.shared.settings import Settings

SHARE_OF_A_ROUND = 0.8
"""How much of what is left to do a round of parts is taken to be: nobody knows yet how many rounds there will be."""


@actor
class Summarize:
    """The actor: made once per process, since reading the certificates that are trusted takes a while."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._allowances = Allowances.of(settings)
        self._tls = httpx.create_ssl_context(trust_env=False)

    async def __call__(self, context: AsyncAttempt, payload: SummarizePayload) -> dict[str, Any]:
        if not payload.content.strip():
            raise InvalidInput("the content has nothing but white space in it")
        return await Summary(context, payload, self._settings, self._open_client).make()

    def _open_client(self, timeout_seconds: float) -> httpx.AsyncClient:
        return open_client(self._allowances, timeout_seconds=timeout_seconds, tls=self._tls)


class Summary:
    """One attempt at one summary."""

    def __init__(
        self,
        context: AsyncAttempt,
        payload: SummarizePayload,
        settings: Settings,
        open_client: Callable[[float], httpx.AsyncClient],
    ) -> None:
        self._context = context
        self._payload = payload
        self._settings = settings
        self._part_characters = settings.summarize_part_characters
        self._open_client = open_client
        self._provider = context.task.provider
        self._price_per_call = settings.providers[self._provider].price_per_call
        self._call_timeout_seconds = settings.providers[self._provider].call_timeout_seconds
        self._model = model_of(settings, self._provider, payload.model)
        self._ledger = Ledger(context)
        self._percent: float | None = None

    async def make(self) -> dict[str, Any]:
        text = self._payload.content
        in_parts = False
        while len(text) > self._part_characters:
            before, text = text, await self._in_parts(text, again=in_parts)
            in_parts = True
            if len(text) >= len(before):
                break  # a model that does not come to the point would keep us here for ever
        messages = prompts.for_the_whole(self._payload, text, is_made_of_summaries=in_parts)
        message = "Writing the summary of the whole" if in_parts else "Summarising"
        summary, finished = await self._call(messages, message, on_text=self._context.output)
        if finished.is_cut_short:
            self._context.progress("The model reached its limit: the summary is cut short", percent=self._percent)
        return {
            "summary": summary,
            "model": finished.model,
            **self._ledger.total(),
            **({"cut_short": True} if finished.is_cut_short else {}),
        }

    async def _in_parts(self, text: str, *, again: bool) -> str:
        """The summaries of the text's parts, one after the other. What an earlier attempt has paid for is not made
        again."""
        parts = split(text, self._part_characters)
        verb = "Condensing" if again else "Summarising"
        start = self._percent or 0.0
        summaries = []
        for number, part in enumerate(parts, start=1):
            self._percent = start + (100 - start) * SHARE_OF_A_ROUND * (number - 1) / len(parts)
            messages = prompts.for_a_part(
                self._payload, part, number=number, count=len(parts), part_characters=self._part_characters
            )
            summaries.append(await self._part(messages, f"{verb} part {number} of {len(parts)}"))
        self._percent = start + (100 - start) * SHARE_OF_A_ROUND
        return "\n\n".join(summaries)

    async def _part(self, messages: Sequence[Message], message: str) -> str:
        name = sha256(json.dumps([self._model, *messages]).encode()).hexdigest()[:32]
        kept = self._ledger.part(name)
        if kept is not None:
            return kept
        summary, _ = await self._call(messages, message, on_text=lambda _: None)
        self._ledger.keep_part(name, summary)
        return summary

    async def _call(
        self, messages: Sequence[Message], message: str, *, on_text: Callable[[str], None]
    ) -> tuple[str, Finished]:
        await self._context.rate()
        self._context.progress(message, percent=self._percent)
        with provider_call(self._provider, "chat"):
            summary, finished = await self._chat(messages, on_text)
        self._ledger.pay(finished)
        self._context.usage(
            cost_usd=self._price_per_call if finished.cost is None else finished.cost,
            prompt_tokens=finished.prompt_tokens,
            completion_tokens=finished.completion_tokens,
        )
        paid(self._provider, finished)
        if not summary:
            raise ServiceUnavailable(f"{self._provider} ({finished.model}) gave an empty summary")
        return summary, finished

    async def _chat(self, messages: Sequence[Message], on_text: Callable[[str], None]) -> tuple[str, Finished]:
        pieces: list[str] = []
        async with self._open_client(self._call_timeout_seconds) as http:
            provider = chat_provider(self._settings, self._provider, http)
            async with aclosing(provider.stream_chat(messages, model=self._model)) as stream:
                async for piece in stream:
                    if isinstance(piece, Finished):
                        finished = piece
                    else:
                        pieces.append(piece)
                        on_text(piece)
        return "".join(pieces).strip(), finished


def model_of(settings: Settings, provider: str, model: str | None) -> str:
    """The one that the task names, else the configured one. What is missing is told to the operator, the key first:
    whoever has none need not look for a model yet."""
    if settings.endpoint_of(provider) is None:
        raise Unauthorized(f"{provider} cannot be spoken to: {settings.lack_of(provider)}")
    model = model or settings.providers[provider].model
    if model is None:
        raise InvalidInput(f"no model: name one in the payload, or as `model` in [providers.{provider}]")
    return model


class Ledger:
    """What was paid for, over all attempts: the checkpoint, `{parts, spent}`.

    A part is known by what the model was told: with another model, or cut elsewhere, it is another part.
    """

    def __init__(self, context: AsyncAttempt) -> None:
        self._context = context
        kept = context.checkpoint or {}
        self._parts: dict[str, str] = dict(kept.get("parts", {}))
        self._spent: dict[str, Any] = {
            "prompt_tokens": 0, "completion_tokens": 0, "cost": None, **kept.get("spent", {}),
        }  # fmt: skip

    def part(self, name: str) -> str | None:
        return self._parts.get(name)

    def keep_part(self, name: str, summary: str) -> None:
        self._parts[name] = summary
        self._save()

    def pay(self, finished: Finished) -> None:
        self._spent["prompt_tokens"] += finished.prompt_tokens or 0
        self._spent["completion_tokens"] += finished.completion_tokens or 0
        if finished.cost is not None:
            self._spent["cost"] = round((self._spent["cost"] or 0) + finished.cost, 10)
        self._save()

    def total(self) -> dict[str, Any]:
        spent = dict(self._spent)
        return {"cost": spent.pop("cost"), "usage": spent}

    def _save(self) -> None:
        self._context.save({"parts": dict(self._parts), "spent": dict(self._spent)})
