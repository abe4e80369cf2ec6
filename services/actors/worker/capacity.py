"""How many attempts this process has room for, by kind: on threads of their own, or on the loop that all such share."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from windlass.shared.store.tasks import Claimed

Kind = Literal["thread", "loop"]
KINDS: tuple[Kind, ...] = get_args(Kind)


def queue_of(attempt: Claimed) -> str:
    return f"{attempt.actor}.{attempt.provider}"


@dataclass(frozen=True)
class Capacity:
    """How many places there are of each kind. A queue is of one kind, as its actor is."""

    threads: int
    loop: int = 0
    queues_of_loop: Collection[str] = field(default_factory=frozenset)

    @classmethod
    def for_queues(cls, queues: Sequence[str], on_the_loop: Collection[str], *, threads: int, loop: int) -> "Capacity":
        """Of a kind that none of these queues is of, there are none."""
        of_loop = frozenset(queue for queue in queues if queue in on_the_loop)
        has_others = len(of_loop) < len(queues) or not queues
        return cls(threads if has_others else 0, loop if of_loop else 0, of_loop)

    @property
    def in_all(self) -> int:
        return self.threads + self.loop

    def kind_of(self, queue: str) -> Kind:
        return "loop" if queue in self.queues_of_loop else "thread"

    def of(self, kind: Kind) -> int:
        return self.loop if kind == "loop" else self.threads
