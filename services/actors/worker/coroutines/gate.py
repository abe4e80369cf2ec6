"""The gate that every step of an attempt on the loop goes through: who takes one is known to others, and once it is
closed nobody takes another."""

import threading
from collections.abc import Callable, Coroutine, Generator
from typing import Any

ENDS_THE_LOOP = (SystemExit, KeyboardInterrupt)
"""What asyncio would let through to the thread, and so to everybody else's cost."""


class Gate:
    """Passed by the loop's thread, closed and looked at by another's. Nothing is locked on the way through: who closes
    it looks afterwards whether somebody has just passed."""

    def __init__(self) -> None:
        self.steps = 0
        self.owner: Any = None
        """Whose step is under way."""
        self._is_closed = False
        self._opened = threading.Condition()

    def enter(self, owner: Any) -> None:
        self.steps += 1
        self.owner = owner
        if self._is_closed:
            self._wait_until_it_is_open(owner)

    def leave(self) -> None:
        self.owner = None

    def seen(self) -> tuple[int, Any]:
        """The step that is under way, and whose it is."""
        return self.steps, self.owner

    def close_behind(self, step: tuple[int, Any]) -> bool:
        """False, and it stays open, if another step has begun."""
        self._is_closed = True
        if self.seen() == step:
            return True
        with self._opened:
            self._is_closed = False
            self._opened.notify_all()
        return False

    def _wait_until_it_is_open(self, owner: Any) -> None:
        """Mostly until the process ends: what would step here has been handed back."""
        self.owner = None
        with self._opened:
            while self._is_closed:
                self._opened.wait()
        self.owner = owner


class Stepped(Coroutine[Any, Any, Any]):
    """A coroutine whose steps go through the gate. To whoever looks at it, it is the one inside."""

    __slots__ = ("_gate", "_inside", "_owner")

    def __init__(self, inside: Coroutine[Any, Any, Any], owner: Any, gate: Gate) -> None:
        self._inside = inside
        self._owner = owner
        self._gate = gate

    def send(self, value: Any) -> Any:
        return self._step(self._inside.send, value)

    def throw(self, *error: Any) -> Any:
        return self._step(self._inside.throw, *error)

    def _step(self, step: Callable[..., Any], *arguments: Any) -> Any:
        self._gate.enter(self._owner)
        try:
            return step(*arguments)
        except ENDS_THE_LOOP as error:
            raise RuntimeError(f"the actor raised {type(error).__name__}: {error}") from error
        finally:
            self._gate.leave()

    def close(self) -> None:
        self._inside.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._inside.__await__()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inside, name)
