"""What of a client is needed by those who speak through one: projects, workflows, approvals, webhooks, memory."""

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from typing import Protocol, TypeVar

from windlass.client.call import Call
from windlass.client.conversation import Conversation
from windlass.client.reading import Connections, M, OnInterruption, OnResumption
from windlass.client.task import Listing

T = TypeVar("T")


class Speaker(Protocol):
    """A client that waits for its answers."""

    patience: float

    def perform(self, call: Call[T]) -> T: ...

    def hold(self, held: Conversation[T]) -> T: ...

    def items_of(self, call: Call[Listing[T]]) -> Iterator[T]: ...

    def follow(
        self, reading: Connections[M], on_interruption: OnInterruption | None, on_resumption: OnResumption | None
    ) -> Generator[M, None, None]: ...


class AsyncSpeaker(Protocol):
    """One that awaits them."""

    patience: float

    async def perform(self, call: Call[T]) -> T: ...

    async def hold(self, held: Conversation[T]) -> T: ...

    def items_of(self, call: Call[Listing[T]]) -> AsyncIterator[T]: ...

    def follow(
        self, reading: Connections[M], on_interruption: OnInterruption | None, on_resumption: OnResumption | None
    ) -> AsyncGenerator[M, None]: ...
