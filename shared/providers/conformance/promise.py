"""One promise of an adapter, and whether it was kept."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from windlass.shared.toml_tables import Endpoint

State = Literal["kept", "broken", "skipped"]


class Broken(Exception):
    """A promise that was not kept: what happened instead."""


class Skipped(Exception):
    """A promise that cannot be tried here: why."""


@dataclass(frozen=True)
class Outcome:
    promise: str
    state: State
    detail: str = ""


@dataclass(frozen=True)
class Promise:
    """In a sentence, and as a trial that raises `Broken`, `Skipped` or nothing."""

    sentence: str
    trial: Callable[[], Awaitable[None]]

    async def try_out(self) -> Outcome:
        try:
            await self.trial()
        except Skipped as why:
            return Outcome(self.sentence, "skipped", str(why))
        except Broken as what:
            return Outcome(self.sentence, "broken", str(what))
        except Exception as error:  # noqa: BLE001 - an adapter may be anybody's, and its error is the finding
            return Outcome(self.sentence, "broken", f"raised {described(error)}")
        return Outcome(self.sentence, "kept")


def answering(endpoint: Endpoint | None) -> Endpoint:
    """Where somebody answers, for a trial that needs one."""
    if endpoint is None:
        raise Skipped("needs somebody who answers: --double names one of yours, --real takes the configured provider")
    return endpoint


def described(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
