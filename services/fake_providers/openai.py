"""Chat completions and embeddings in OpenAI's own shape, for those who speak it with a server of their own."""

import secrets
from typing import Any

from litestar import Response, get, post

from windlass.services.fake_providers.behaviour import without_words
from windlass.services.fake_providers.desk import Desk, Incoming, Refusal, read_object
from windlass.services.fake_providers.openrouter import MODEL, answer_chat
from windlass.shared.hashing import hashed

SAID = {
    "no-key": ("You didn't provide an API key.", "invalid_request_error", None),
    "bad-key": ("Incorrect API key provided.", "invalid_request_error", "invalid_api_key"),
    "no-credit": ("You exceeded your current quota.", "insufficient_quota", "insufficient_quota"),
    "moderated": ("The input was flagged by the content policy.", "invalid_request_error", "content_policy_violation"),
    "scripted": ("The server had an error while processing your request.", "server_error", None),
}
EMBEDDING_MODEL = "windlass/fake-embedder"
EMBEDDING_DIMENSIONS = 384

STATUSES = {"no-credit": 429, "moderated": 400}
"""Where OpenAI says the same with another status than the others."""


def refuse(_request: Incoming, refusal: Refusal) -> Response[Any]:
    message, kind, code = SAID.get(refusal.reason, (refusal.message, "invalid_request_error", None))
    error = {"message": message, "type": kind, "param": None, "code": code}
    status = STATUSES.get(refusal.reason, refusal.status)
    return Response({"error": error}, status_code=status, headers=refusal.headers)


@post("/chat/completions", status_code=200)
async def chat_completions(request: Incoming, desk: Desk) -> Response[Any]:
    return await answer_chat(request, desk, f"chatcmpl-{secrets.token_hex(12)}", is_plain=True)


@get("/models")
async def models(request: Incoming, desk: Desk) -> dict[str, Any]:
    await desk.admit(request, "account")
    return {"object": "list", "data": [{"id": MODEL, "object": "model", "created": 1731715200, "owned_by": "windlass"}]}


@post("/embeddings", status_code=200)
async def embeddings(request: Incoming, desk: Desk) -> dict[str, Any]:
    """Vectors that tell texts apart by their words, as ours without a provider do; wide enough to be told from them."""
    body = await read_object(request)
    said = body.get("input")
    texts = [said] if isinstance(said, str) else said
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) and text for text in texts):
        raise Refusal(400, "invalid", "'$.input' is invalid.")
    behaviour = await desk.admit(request, "order", "\n".join(texts))
    await desk.before_answering(request, behaviour)
    tokens = sum(len(text.split()) for text in texts)
    vectors = [hashed(without_words(text), EMBEDDING_DIMENSIONS) for text in texts]
    return {
        "object": "list",
        "model": body.get("model") or EMBEDDING_MODEL,
        "data": [{"object": "embedding", "index": n, "embedding": vector} for n, vector in enumerate(vectors)],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


HANDLERS = [chat_completions, embeddings, models]
