"""Chat completions as OpenAI shaped them, streamed: pieces of text as they are written, and at the end their usage."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import httpx
from httpx_sse import EventSource

from windlass.shared.errors import ContentRejected, NetworkTimeout, QuotaExhausted, ServiceUnavailable, TaskError
from windlass.shared.providers.base import Embedded, Finished, Message
from windlass.shared.providers.http.answers import (
    error_of,
    error_of_status,
    error_of_transport,
    not_understood,
    read_words,
)
from windlass.shared.providers.http.bounds import bound
from windlass.shared.providers.http.exchange import LARGEST_ANSWER_BYTES, send
from windlass.shared.scrubbing import SCRUBBED
from windlass.shared.toml_tables import Endpoint

END = "[DONE]"
LARGEST_STREAM_BYTES = 32_000_000
"""Each token takes some hundred bytes of a stream: more than models write, and little enough to be kept in memory."""


class Adapter:
    """Made from its name in the settings, where it is, and a client that may reach it. Whoever speaks the same with
    words of its own (`openrouter.py`) says them in `_body` and `_headers`."""

    def __init__(self, name: str, endpoint: Endpoint, http: httpx.AsyncClient) -> None:
        self._name = name
        self._endpoint = endpoint
        self._http = http

    async def stream_chat(self, messages: Sequence[Message], *, model: str) -> AsyncGenerator[str | Finished, None]:
        """Pieces of text, then one `Finished`; who stops reading closes the connection, which ends the generation.

        The client's read timeout is the longest silence: comment lines are signs of life too.
        """
        generation = Generation(self._name, model)
        body, url = self._body(messages, model), f"{self._endpoint.base_url}/chat/completions"
        try:
            async with (
                self._http.stream("POST", url, headers=self._headers(), json=body) as response,
                aclosing(self._events(response)) as events,
            ):
                async for data in events:
                    if text := generation.take(data):
                        yield text
                    if generation.is_over:
                        break
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            # A connection that is lost after the last word has taken nothing with it.
            if generation.finished() is None:
                raise error_of_transport(self._name, error) from error
        finished = generation.finished()
        if finished is None:
            raise NetworkTimeout(f"{self._name}'s stream ended before the answer did", sent=True)
        yield finished

    async def embed(self, texts: Sequence[str], *, model: str) -> Embedded:
        """`/embeddings`: all texts in one call. A text that the provider refuses is an error of all of them."""
        body = {"model": model, "input": list(texts), "encoding_format": "float"}
        headers = {**self._headers(), "Accept": "application/json"}
        url, key = f"{self._endpoint.base_url}/embeddings", self._endpoint.api_key
        try:
            said = await send(self._http, self._name, "POST", url, key=key, headers=headers, json=body)
        except TaskError as error:
            raise of_an_account(error) from error
        return vectors_in(self._name, said, len(texts))

    def _body(self, messages: Sequence[Message], model: str) -> dict[str, Any]:
        return {
            "model": model,
            "messages": list(messages),
            "stream": True,
            "stream_options": {"include_usage": True},
        }

    def _headers(self) -> dict[str, str]:
        """A server of one's own may want no key."""
        key = self._endpoint.api_key
        return {
            "Accept": "text/event-stream, application/json",
            **({"Authorization": f"Bearer {key}"} if key else {}),
        }

    async def _events(self, response: httpx.Response) -> AsyncGenerator[str, None]:
        """The data of each event. Until the generation begins an error has its own status and is no stream."""
        bound(response, self._name, most_bytes=LARGEST_STREAM_BYTES, most_bytes_per_line=LARGEST_ANSWER_BYTES)
        if not response.is_success:
            raise of_an_account(error_of(self._name, response, await self._whole(response)))
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            async with aclosing(EventSource(response).aiter_sse()) as events:
                async for event in events:
                    if event.data:
                        yield self._without_key(event.data)
        else:
            yield await self._whole(response)

    async def _whole(self, response: httpx.Response) -> str:
        body = bytearray()
        async for part in response.aiter_bytes():
            body += part
            if len(body) > LARGEST_ANSWER_BYTES:
                break
        return self._without_key(body.decode(errors="replace"))

    def _without_key(self, text: str) -> str:
        return text.replace(self._endpoint.api_key, SCRUBBED) if self._endpoint.api_key else text


def vectors_in(provider: str, said: str, number: int) -> Embedded:
    """Each text's vector has the text's number; they need not come in order."""
    try:
        answer = json.loads(said)
        by_place = {int(each["index"]): [float(part) for part in each["embedding"]] for each in answer["data"]}
        vectors = [by_place[place] for place in range(number)]
        usage = dict(answer.get("usage") or {})
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise not_understood(provider, 200, said) from error
    return Embedded(vectors, usage.get("prompt_tokens"), usage.get("cost"))


class Generation:
    """What the chunks of one stream have said so far."""

    def __init__(self, provider: str, model: str) -> None:
        self._provider = provider
        self._model = model
        self._generation_id: str | None = None
        self._finish_reason: str | None = None
        self._usage: Mapping[str, Any] = {}
        self.is_over = False
        """Whether the provider has said that nothing comes any more."""

    def take(self, data: str) -> str:
        """The text in one event's data, which may be none; raises the error that it tells of."""
        if data.strip() == END:
            self.is_over = True
            return ""
        try:
            return self._read(json.loads(data))
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise not_understood(self._provider, 200, data) from error

    def finished(self) -> Finished | None:
        """Its end, or none when the stream was cut off before it: some of the text may be missing then."""
        if self._finish_reason is None or not (self.is_over or self._usage):
            return None
        return Finished(
            self._model,
            self._finish_reason,
            self._generation_id,
            self._usage.get("prompt_tokens"),
            self._usage.get("completion_tokens"),
            self._usage.get("cost"),
        )

    def _read(self, chunk: Any) -> str:
        if chunk.get("error"):
            raise error_inside(self._provider, chunk)
        self._model = chunk.get("model") or self._model
        self._generation_id = chunk.get("id") or self._generation_id
        self._usage = dict(chunk.get("usage") or self._usage)
        text = ""
        for choice in chunk.get("choices") or ():
            self._finish_reason = choice.get("finish_reason") or self._finish_reason
            text += (choice.get("delta") or choice.get("message") or {}).get("content") or ""
        if self._finish_reason == "content_filter":
            raise ContentRejected(f"{self._provider}'s moderation stopped the answer", model=self._model)
        if self._finish_reason == "error":
            raise ServiceUnavailable(f"{self._provider} gave up in the middle of the answer", model=self._model)
        return text


def of_an_account(error: TaskError) -> TaskError:
    """An account without money is told with a 429 as well: waiting does not help it."""
    if error.details.get("code") == "insufficient_quota":
        return QuotaExhausted(error.message, **error.details)
    return error


def error_inside(provider: str, chunk: Mapping[str, Any]) -> TaskError:
    """After the generation has begun the status is 200 for ever, and the error's code says what it would have been."""
    said = read_words(json.dumps(chunk))
    try:
        status = int(said.code or 0)
    except ValueError:
        status = 0
    return error_of_status(provider, status if 400 <= status <= 599 else 502, said)
