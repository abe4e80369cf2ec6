"""Chat completions in OpenAI's own shape, for those who speak it with a server of their own."""

import secrets
from typing import Any

from litestar import Response, get, post

from windlass.services.fake_providers.desk import Desk, Incoming, Refusal
from windlass.services.fake_providers.openrouter import MODEL, answer_chat

SAID = {
    "no-key": ("You didn't provide an API key.", "invalid_request_error", None),
    "bad-key": ("Incorrect API key provided.", "invalid_request_error", "invalid_api_key"),
    "no-credit": ("You exceeded your current quota.", "insufficient_quota", "insufficient_quota"),
    "moderated": ("The input was flagged by the content policy.", "invalid_request_error", "content_policy_violation"),
    "scripted": ("The server had an error while processing your request.", "server_error", None),
}
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


HANDLERS = [chat_completions, models]
