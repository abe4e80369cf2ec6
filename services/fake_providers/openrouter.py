"""OpenRouter: chat completions, whole or streamed, that summarise whatever they are given."""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any

from litestar import Response, get, post

from windlass.services.fake_providers.behaviour import Behaviour, without_words
from windlass.services.fake_providers.desk import Desk, Incoming, Refusal, read_object
from windlass.services.fake_providers.job import Job
from windlass.services.fake_providers.streaming import Lost, Streamed
from windlass.services.fake_providers.summary import Completion, complete, wishes_in

PACE_SECONDS = 0.02
WORDS_PER_CHUNK = 3
MODEL = "windlass/fake-summariser"
MESSAGES = {
    "no-key": "No auth credentials found",
    "bad-key": "User not found.",
    "no-credit": "Insufficient credits. Add more using https://openrouter.ai/settings/credits",
    "moderated": "Your chosen model requires moderation and your input was flagged",
    "scripted": "Provider returned error",
}
PROCESSING = b": OPENROUTER PROCESSING\n\n"


def refuse(_request: Incoming, refusal: Refusal) -> Response[Any]:
    metadata: dict[str, Any] = {}
    if refusal.reason == "moderated":
        flagged = without_words(refusal.message)[:100]
        metadata = {"reasons": ["violence"], "flagged_input": flagged, "provider_name": "Fake", "model_slug": MODEL}
    message = MESSAGES.get(refusal.reason, refusal.message)
    error = {"code": refusal.status, "message": message, **({"metadata": metadata} if metadata else {})}
    return Response({"error": error}, status_code=refusal.status, headers=refusal.headers)


@dataclass(frozen=True)
class Chat:
    """One call: what it was asked, and what it is going to say."""

    job: Job
    model: str
    completion: Completion
    finish_reason: str
    is_plain: bool = False
    """In OpenAI's own shape, without what OpenRouter adds to it."""

    @property
    def usage(self) -> dict[str, Any] | None:
        """At the end of a stream. OpenAI tells it to who asks for it, and knows no costs."""
        if not self.is_plain:
            return self.completion.usage
        options = self.job.request.get("stream_options") or {}
        return without_cost(self.completion.usage) if options.get("include_usage") else None

    @property
    def behaviour(self) -> Behaviour:
        return self.job.behaviour

    def document(self, kind: str, choice: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {
            "id": self.job.job_id,
            **({} if self.is_plain else {"provider": "Fake"}),
            "model": self.model,
            "object": kind,
            "created": int(self.job.at),
            "choices": [{"index": 0, "logprobs": None, **choice}],
            **more,
        }

    def chunk(self, content: str, finish_reason: str | None = None, **more: Any) -> bytes:
        choice = {
            "delta": {"role": "assistant", "content": content},
            "finish_reason": finish_reason,
            **({} if self.is_plain else {"native_finish_reason": finish_reason}),
        }
        return event(json.dumps(self.document("chat.completion.chunk", choice, **more)))

    def error(self) -> dict[str, Any]:
        code = int(self.behaviour.number("error-in-stream", 502))
        return {"code": code, "message": "Provider disconnected unexpectedly", "metadata": {"provider_name": "Fake"}}


def without_cost(usage: Mapping[str, Any]) -> dict[str, Any]:
    return {name: number for name, number in usage.items() if name != "cost"}


def event(data: str) -> bytes:
    return f"data: {data}\n\n".encode()


@post("/chat/completions", status_code=200)
async def chat_completions(request: Incoming, desk: Desk) -> Response[Any]:
    return await answer_chat(request, desk, new_id())


async def answer_chat(request: Incoming, desk: Desk, job_id: str, *, is_plain: bool = False) -> Response[Any]:
    body = await read_object(request)
    messages = read_messages(body)
    behaviour = await desk.admit(request, "order", "\n".join(text for _, text in messages))
    asked = next((text for role, text in reversed(messages) if role == "user"), messages[-1][1])
    job = desk.begin_chat(request, job_id, behaviour, prompt=asked, body=body)
    everything = " ".join(without_words(text) for _, text in messages)
    most_tokens = 0 if "empty" in behaviour else body.get("max_tokens")
    completion = complete(without_words(asked), everything, most_tokens, wishes_in(messages))
    model = body.get("model") or next(iter(body.get("models") or []), MODEL)
    model = MODEL if model == "openrouter/auto" else model
    finish_reason = behaviour.text("finish") or ("length" if completion.is_cut else "stop")
    chat = Chat(job, model, completion, finish_reason, is_plain)
    headers = {} if is_plain else {"X-Generation-Id": job.job_id}
    if body.get("stream") and "garbage" not in behaviour:
        return Streamed(stream(request, desk, chat), "text/event-stream", {"Cache-Control": "no-cache", **headers})
    return Response(await answer_whole(request, desk, chat), headers=headers)


def new_id() -> str:
    return f"gen-{int(time.time())}-{secrets.token_hex(10)}"


def read_messages(body: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Role and text of each message; content may also come in parts."""
    messages = body.get("messages")
    if body.get("max_tokens") is not None and not isinstance(body["max_tokens"], int):
        raise Refusal(400, "invalid", "max_tokens: expected a number")
    if not isinstance(messages, list) or not messages or not all(isinstance(each, dict) for each in messages):
        raise Refusal(400, "invalid", "Input required: specify messages")
    return [(str(message.get("role")), _text_of(message.get("content"))) for message in messages]


def _text_of(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(str(part["text"]) for part in content if isinstance(part, dict) and "text" in part)
    return str(content or "")


async def answer_whole(request: Incoming, desk: Desk, chat: Chat) -> dict[str, Any]:
    ended = "left"
    try:
        await desk.before_answering(request, chat.behaviour)
        ended = "failed" if "error-in-stream" in chat.behaviour or "fail" in chat.behaviour else "complete"
    finally:
        desk.end_chat(chat.job, ended)
    if ended == "failed":
        return {"id": chat.job.job_id, "error": chat.error()}
    message = {"role": "assistant", "content": chat.completion.text, "refusal": None}
    choice = {"message": message, "finish_reason": chat.finish_reason, "native_finish_reason": chat.finish_reason}
    usage = without_cost(chat.completion.usage) if chat.is_plain else chat.completion.usage
    return chat.document("chat.completion", choice, usage=usage)


async def stream(request: Incoming, desk: Desk, chat: Chat) -> AsyncGenerator[bytes, None]:
    """In the books it has ended before the client is told so: whoever it makes room for may come at once."""
    ended = "left"
    try:
        if not chat.is_plain:
            yield PROCESSING
        await desk.before_answering(request, chat.behaviour)
        if not chat.is_plain:
            yield PROCESSING
        async for piece in content(chat):
            yield piece
        if "error-in-stream" in chat.behaviour or "fail" in chat.behaviour:
            ended = "failed"
            desk.end_chat(chat.job, ended)
            yield chat.chunk("", "error", error=chat.error())
            return
        ended = "complete"
        desk.end_chat(chat.job, ended)
        if "no-done" in chat.behaviour:
            return
        yield chat.chunk("", chat.finish_reason)
        if (usage := chat.usage) is not None:
            yield chat.chunk("", usage=usage)
        yield event("[DONE]")
    finally:
        desk.end_chat(chat.job, ended)


async def content(chat: Chat) -> AsyncGenerator[bytes, None]:
    """The completion in chunks; a stream that has to break does so in the middle of it."""
    breaks_after = int(chat.behaviour.number("drop-stream", 2)) if "drop-stream" in chat.behaviour else None
    errs_after = 2 if "error-in-stream" in chat.behaviour or "fail" in chat.behaviour else None
    for number, piece in enumerate(chat.completion.pieces(WORDS_PER_CHUNK)):
        if number == breaks_after:
            raise Lost
        if number == errs_after:
            return
        yield chat.chunk(piece)
        await asyncio.sleep(chat.behaviour.number("pace", PACE_SECONDS))
    if breaks_after is not None:
        raise Lost


@get("/models")
async def models() -> dict[str, Any]:
    """Everybody may read them."""
    model = {
        "id": MODEL,
        "canonical_slug": MODEL,
        "name": "Windlass: Fake Summariser",
        "created": 1731715200,
        "description": "Says the first sentences of what it is given.",
        "context_length": 131072,
        "architecture": {"input_modalities": ["text"], "output_modalities": ["text"], "tokenizer": "Other"},
        "pricing": {"prompt": "0.00000015", "completion": "0.0000006", "request": "0", "image": "0"},
    }
    return {"data": [model]}


@get("/generation")
async def generation(request: Incoming, desk: Desk) -> dict[str, Any]:
    job_id = request.query_params.get("id", "")
    await desk.admit(request, "poll", desk.prompt_of(job_id))
    job = desk.books.find(desk.provider, job_id)
    if job is None:
        raise Refusal(404, "invalid", f"Generation {job_id} not found")
    text, wishes = without_words(job.prompt), wishes_in(read_messages(job.request))
    completion = complete(text, text, job.request.get("max_tokens"), wishes)
    usage = completion.usage
    return {
        "data": {
            "id": job.job_id,
            "model": job.request.get("model", MODEL),
            "streamed": bool(job.request.get("stream")),
            "cancelled": job.ended == "left",
            "finish_reason": "stop" if job.ended == "complete" else None,
            "total_cost": usage["cost"],
            "tokens_prompt": usage["prompt_tokens"],
            "tokens_completion": usage["completion_tokens"],
            "provider_name": "Fake",
        }
    }


@get("/key")
async def key(request: Incoming, desk: Desk) -> dict[str, Any]:
    await desk.admit(request, "account")
    limits = {"limit": None, "limit_remaining": None, "is_free_tier": False}
    return {"data": {"label": "sk-or-v1-fak...ake", "usage": 0, **limits}}


HANDLERS = [chat_completions, models, generation, key]
