"""What an adapter for texts promises: words as they are written, an end that tells its use, errors by kind."""

from collections.abc import Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import httpx

from windlass.shared.errors import TaskError, Unauthorized
from windlass.shared.providers.base import ChatProvider, Finished
from windlass.shared.providers.conformance.faults import FAULTS, KEY, Fault, check_error, client_that_meets
from windlass.shared.providers.conformance.promise import Broken, Promise, Skipped, answering
from windlass.shared.providers.registry import Maker
from windlass.shared.toml_tables import Endpoint

NOWHERE = Endpoint("https://provider.example/v1", KEY)
QUESTION = (
    {"role": "system", "content": "Summarise the user's text in one sentence."},
    {"role": "user", "content": "A windlass hauls a heavy load. Its pawl never lets the load slip back."},
)
CUT_OFF = Fault(
    "", lambda _: httpx.Response(200, content=b": hello\n\n", headers={"Content-Type": "text/event-stream"}), TaskError
)


@dataclass(frozen=True)
class Writer:
    """An adapter to be tried, and where: without an endpoint only what needs none is."""

    name: str
    adapter: Maker
    endpoint: Endpoint | None
    open_client: Callable[[], httpx.AsyncClient]
    model: str | None


def chat_promises(writer: Writer) -> Iterator[Promise]:
    for fault in FAULTS:
        yield Promise(f"stream_chat: {fault.sentence}", partial(_meets, writer, fault))
    yield Promise("stream_chat: a stream that ends before the answer is an error", partial(_is_cut_off, writer))
    yield Promise("stream_chat: words come in pieces, then how it ended", partial(_whole_answer, writer))
    yield Promise("stream_chat: the end tells the tokens that were used", partial(_tells_usage, writer))
    yield Promise("stream_chat: a wrong key is Unauthorized", partial(_wrong_key, writer))


async def _said(adapter: ChatProvider, model: str) -> list[str | Finished]:
    async with aclosing(adapter.stream_chat(QUESTION, model=model)) as stream:
        return [piece async for piece in stream]


async def _meets(writer: Writer, fault: Fault) -> None:
    async with client_that_meets(fault) as http:
        try:
            said = await _said(writer.adapter(writer.name, NOWHERE, http), "any")
        except TaskError as error:
            check_error(fault, error)
        else:
            raise Broken(f"it was taken for an answer: {said}")


async def _is_cut_off(writer: Writer) -> None:
    async with client_that_meets(CUT_OFF) as http:
        try:
            said = await _said(writer.adapter(writer.name, NOWHERE, http), "any")
        except TaskError:
            return
    raise Broken(f"it was taken for an answer: {said}")


async def _whole_answer(writer: Writer) -> None:
    *pieces, finished = await _answer(writer)
    if not isinstance(finished, Finished):
        raise Broken("the last that came is no Finished")
    if not all(isinstance(piece, str) for piece in pieces):
        raise Broken("there is something else than text before the end")
    if not "".join(map(str, pieces)).strip():
        raise Broken("the answer has no words")


async def _tells_usage(writer: Writer) -> None:
    finished: Any = (await _answer(writer))[-1]
    if finished.prompt_tokens is None or finished.completion_tokens is None:
        raise Skipped("it tells none: the task's usage is what `price_per_call` says")


async def _wrong_key(writer: Writer) -> None:
    endpoint = answering(writer.endpoint)
    if not endpoint.api_key:
        raise Skipped("it asks for no key")
    try:
        await _answer(replace(writer, endpoint=replace(endpoint, api_key="bad-key")))
    except Unauthorized:
        return
    raise Broken("it answered all the same")


async def _answer(writer: Writer) -> list[str | Finished]:
    endpoint = answering(writer.endpoint)
    if writer.model is None:
        raise Skipped(f"no model: name one as `model` in [providers.{writer.name}]")
    async with writer.open_client() as http:
        return await _said(writer.adapter(writer.name, endpoint, http), writer.model)
