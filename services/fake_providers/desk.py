"""Where one provider's requests arrive: the key is looked at, what was scripted is done, and the books are kept."""

import re
from collections.abc import Mapping
from typing import Any

from litestar import Request

from windlass.services.fake_providers.behaviour import Behaviour, without_words
from windlass.services.fake_providers.books import Books
from windlass.services.fake_providers.callbacks import Callbacks
from windlass.services.fake_providers.connection import connection_of, drop, stay
from windlass.services.fake_providers.job import Job, Kind
from windlass.services.fake_providers.scripts import Scripts

Incoming = Request[Any, Any, Any]
MODERATED = re.compile(r"\bmoderated\b", re.IGNORECASE)


class Refusal(Exception):
    """A request that is not served: `reason` is why, and each provider has its own words for it."""

    def __init__(self, status: int, reason: str, message: str = "", *, retry_after: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after

    @property
    def headers(self) -> dict[str, str]:
        return {"Retry-After": self.retry_after} if self.retry_after else {}


class Garbage(Exception):
    """The answer is to be something that nobody can read."""


class Desk:
    def __init__(self, provider: str, url: str, books: Books, scripts: Scripts, callbacks: Callbacks) -> None:
        self.provider = provider
        self.url = url
        self.books = books
        self._scripts = scripts
        self._callbacks = callbacks
        self._chats: dict[str, tuple[Job, Incoming]] = {}

    async def admit(self, request: Incoming, call: str, text: str = "") -> Behaviour:
        """What holds for this request, if it is served at all."""
        self._check_key(request)
        behaviour = self._scripts.hear(self.provider, call, text)
        if "hang" in behaviour:
            await stay(request, None)
        if "drop-before" in behaviour:
            await drop(request)
        if behaviour.status is not None:
            raise Refusal(behaviour.status, "scripted", retry_after=behaviour.retry_after)
        if "body-code" in behaviour:
            raise Refusal(200, "scripted", f"{behaviour.number('body-code', 500):.0f}")
        if call == "order" and MODERATED.search(without_words(text)):
            raise Refusal(403, "moderated", text)
        return behaviour

    async def before_answering(self, request: Incoming, behaviour: Behaviour) -> None:
        if "hang-after" in behaviour:
            await stay(request, None)
        if "drop-after" in behaviour:
            await drop(request)
        if "delay" in behaviour:
            await stay(request, behaviour.number("delay", 0))
        if "garbage" in behaviour:
            raise Garbage

    def take(
        self,
        job_id: str,
        behaviour: Behaviour,
        *,
        kind: Kind,
        prompt: str,
        body: Mapping[str, Any],
        callback_url: str | None = None,
    ) -> Job:
        job = self.books.take(
            self.provider,
            job_id,
            kind=kind,
            prompt=prompt,
            request=body,
            behaviour=behaviour,
            callback_url=callback_url,
        )
        self._callbacks.expect(job)
        if "forged-callback" in behaviour:
            self._callbacks.forge(job)
        return job

    def begin_chat(
        self, request: Incoming, job_id: str, behaviour: Behaviour, *, prompt: str, body: Mapping[str, Any]
    ) -> Job:
        """Whoever has hung up by now is gone, noticed or not: a new call is not counted beside it."""
        for chat, asked_by in list(self._chats.values()):
            if connection_of(asked_by.scope).has_lost_its_client():
                self.end_chat(chat, "left")
        job = self.take(job_id, behaviour, kind="chat", prompt=prompt, body=body)
        self._chats[job.job_id] = job, request
        return job

    def end_chat(self, job: Job, how: str) -> None:
        self._chats.pop(job.job_id, None)
        self.books.end(job, how)

    def prompt_of(self, job_id: str) -> str:
        """What a poll or a cancel is about, so that it can be scripted by its prompt."""
        job = self.books.find(self.provider, job_id)
        return job.prompt if job else ""

    def poll(self, job_id: str) -> Job | None:
        job = self.books.poll(self.provider, job_id)
        if job is not None and "pending" in job.behaviour:
            self._callbacks.expect(job)
        return job

    def _check_key(self, request: Incoming) -> None:
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            raise Refusal(401, "no-key")
        if key == "bad-key":
            raise Refusal(401, "bad-key")
        if key == "no-credit" and request.method == "POST":
            raise Refusal(402, "no-credit")


async def read_object(request: Incoming) -> dict[str, Any]:
    try:
        body = await request.json()
    except Exception:  # noqa: BLE001 - whatever the library calls a body that is no JSON
        body = None
    if not isinstance(body, dict):
        raise Refusal(400, "invalid", "the body is not a JSON object")
    return body
