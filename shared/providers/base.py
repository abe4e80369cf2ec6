"""What can be said to a provider of media or of texts, whatever its HTTP looks like, and what it may answer."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from windlass.shared.errors import TaskError


@dataclass(frozen=True)
class Order:
    """Work that costs money; `reference` is our own name for it, `callback_url` where its end may be told."""

    action: str
    prompt: str
    reference: str
    source_image: str | None = None
    """The URL of the picture to begin with."""
    picture: str | None = None
    """The provider's own name for that picture, where `prepare` has brought it there."""
    params: Mapping[str, Any] = field(default_factory=dict)
    callback_url: str | None = None


@dataclass(frozen=True)
class Ordered:
    """The provider has taken the order, and this is its name for it."""

    job_id: str
    response: Any


@dataclass(frozen=True)
class Pending:
    """It works on it; `percent` as far as it says so."""

    percent: float | None = None


@dataclass(frozen=True)
class Done:
    """Its work is at these URLs, for a while."""

    urls: tuple[str, ...]
    response: Any


@dataclass(frozen=True)
class Failed:
    """The job has ended without a result, and will not have one."""

    error: TaskError
    response: Any


@dataclass(frozen=True)
class Found:
    """The order had arrived, and this is the provider's name for it."""

    job_id: str


class NotThere:
    """The provider knows for certain that it has no such order."""


class CannotTell:
    """The provider has no way to find it out."""


class OrderUnknown(Exception):
    """The order was sent, and nobody can tell from the answer whether it was taken: a lost connection, a 500 or 504."""


class MediaProvider(Protocol):
    """Made from `(name, endpoint, http)`: its name in the settings, where it is, and a client that may reach it.

    Its class may have `actions` (`shared/providers/params.py`): what it can be asked for, each with the parameters that
    it takes beside the prompt and the picture. Without, it takes none. `calls_back = True` says that the provider tells
    every job's end to the order's `callback_url`: an order whose answer was lost is waited for.

    Every method may raise a `TaskError` of `shared/errors.py`. From `order` such an error means that the order was
    certainly not taken, so that it may be sent again; where that is not certain it raises `OrderUnknown`.
    """

    async def order(self, order: Order) -> Ordered: ...

    async def poll(self, job_id: str) -> Pending | Done | Failed: ...

    async def find(self, order: Order, intended_at: datetime) -> Found | NotThere | CannotTell:
        """Looks for an order whose answer was lost."""

    async def cancel(self, job_id: str) -> bool:
        """True when the provider works on it no longer."""

    def job_of_callback(self, body: Any) -> str | None:
        """The job that a callback is about. What else it says is not believed: the provider is asked."""


def calls_back(provider: MediaProvider) -> bool:
    """Whether whoever has lost the answer to an order may hope for its callback."""
    return getattr(provider, "calls_back", False) is True


@runtime_checkable
class PreparingProvider(Protocol):
    """One that has to be brought something before it takes an order, such as the picture to begin with."""

    async def prepare(self, order: Order) -> Order:
        """The order as it is to be placed. Costs nothing, may be done again, and comes before anything is written
        down: whatever goes wrong here holds up nobody."""


Message = Mapping[str, str]
"""`{role, content}`."""


@dataclass(frozen=True)
class Finished:
    """How a generation ended, and what it used; none is what the provider did not say."""

    model: str
    finish_reason: str
    generation_id: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None

    @property
    def is_cut_short(self) -> bool:
        """The model had more to say than it may say at once."""
        return self.finish_reason == "length"


@dataclass(frozen=True)
class Embedded:
    """One vector for each text, in their order, and what they used as far as the provider said so."""

    vectors: Sequence[Sequence[float]]
    prompt_tokens: int | None = None
    cost: float | None = None


@runtime_checkable
class EmbeddingProvider(Protocol):
    """Made as a `MediaProvider` is. Every error that it raises is a `TaskError` of `shared/errors.py`."""

    async def embed(self, texts: Sequence[str], *, model: str) -> Embedded: ...


class ChatProvider(Protocol):
    """Made as a `MediaProvider` is. Every error that it raises is a `TaskError` of `shared/errors.py`."""

    def stream_chat(self, messages: Sequence[Message], *, model: str) -> AsyncGenerator[str | Finished, None]:
        """Pieces of text as they are written, then one `Finished`; who stops reading ends the generation."""
