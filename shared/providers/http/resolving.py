"""Resolves names so that slow ones delay nobody else: few threads for each owner, a time limit, a brief cache."""

import asyncio
import socket
import threading
import time
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

LookUp = Callable[[str], list[str]]

RESOLVE_SECONDS = 6.0
"""Long enough for the second name server when the first is down: libc gives each five seconds."""

KEPT_SECONDS = 30.0
KEPT_SECONDS_IF_UNKNOWN = 5.0
MOST_KEPT = 1000
MOST_THREADS = 64
MOST_THREADS_PER_OWNER = 4
MOST_QUEUED_PER_OWNER = 200


def ask_the_system(host: str) -> list[str]:
    """The system's answer, which also reads the numbers that pass for addresses: 127.1, 0x7f000001, 2130706433."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


@dataclass(frozen=True)
class Known:
    """An outcome, and until when it is believed."""

    addresses: list[str]
    error: str | None
    until: float

    def result(self) -> list[str]:
        if self.error is not None:
            raise OSError(self.error)
        return self.addresses


@dataclass(eq=False)
class Pending:
    """A lookup that runs or is queued, and everything that waits for it, on whichever event loop."""

    owner: str
    host: str
    waiters: set[asyncio.Future[Known]] = field(default_factory=set)

    def tell(self, known: Known) -> None:
        for waiter in self.waiters:
            with suppress(RuntimeError):  # its loop is closed
                waiter.get_loop().call_soon_threadsafe(_set, waiter, known)


class Resolver:
    """Asks libc on threads, for it has no other interface and cannot be interrupted.

    Names are looked up for an owner. Lookups of one owner wait for each other when they are slow, and not those of
    another owner. Each runs on a thread of its own, which is a daemon: one that is stuck does not keep the process.
    """

    def __init__(
        self,
        look_up: LookUp = ask_the_system,
        *,
        seconds: float = RESOLVE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._look_up = look_up
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Known] = OrderedDict()
        self._pending: dict[tuple[str, str], Pending] = {}
        self._queues: defaultdict[str, deque[Pending]] = defaultdict(deque)
        self._running: Counter[str] = Counter()

    async def resolve(self, host: str, *, owner: str | None = None) -> list[str]:
        """The addresses of a name. Raises OSError for a name without any, and TimeoutError after the time limit; a
        lookup that takes longer goes on, and is joined by the next call for the name. Without an owner, only lookups of
        the same name wait for each other."""
        waiter: asyncio.Future[Known] = asyncio.get_running_loop().create_future()
        with self._lock:
            known = self._known.get(host)
            if known is not None and self._clock() < known.until:
                return known.result()
            pending = self._join(owner or host, host, waiter)
        try:
            async with asyncio.timeout(self._seconds):
                return (await waiter).result()
        finally:
            with self._lock:
                pending.waiters.discard(waiter)

    def _join(self, owner: str, host: str, waiter: asyncio.Future[Known]) -> Pending:
        """Lookups are shared within an owner only: one that is queued behind slow names would delay another owner."""
        pending = self._pending.get((owner, host))
        if pending is not None:
            pending.waiters.add(waiter)
            return pending
        if len(self._queues[owner]) >= MOST_QUEUED_PER_OWNER:
            raise OSError("too many names are being resolved at once")
        pending = self._pending[owner, host] = Pending(owner, host, {waiter})
        self._queues[owner].append(pending)
        self._start_queued()
        return pending

    def _start_queued(self) -> None:
        """Owners with the fewest running lookups first: a long queue must not take every thread that becomes free."""
        for owner in sorted(self._queues, key=lambda each: self._running[each]):
            queue = self._queues[owner]
            while queue and self._running[owner] < MOST_THREADS_PER_OWNER and self._running.total() < MOST_THREADS:
                pending = queue.popleft()
                if not pending.waiters:
                    del self._pending[owner, pending.host]
                    continue
                self._running[owner] += 1
                threading.Thread(target=self._run, args=(pending,), name="resolving", daemon=True).start()
            if not queue:
                del self._queues[owner]

    def _run(self, pending: Pending) -> None:
        known = self._outcome(pending.host)
        with self._lock:
            self._known[pending.host] = known
            self._known.move_to_end(pending.host)
            while len(self._known) > MOST_KEPT:
                self._known.popitem(last=False)
            del self._pending[pending.owner, pending.host]
            self._running[pending.owner] -= 1
            if not self._running[pending.owner]:
                del self._running[pending.owner]
            pending.tell(known)
            self._start_queued()

    def _outcome(self, host: str) -> Known:
        try:
            return Known(self._look_up(host), None, self._clock() + KEPT_SECONDS)
        except (OSError, UnicodeError) as error:
            return Known([], str(error), self._clock() + KEPT_SECONDS_IF_UNKNOWN)


def _set(waiter: asyncio.Future[Known], known: Known) -> None:
    if not waiter.done():
        waiter.set_result(known)
