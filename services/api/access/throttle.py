"""Keys that do not open, counted per address: who only guesses is told to wait. A key that opens is never held up."""

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

FAILURES = 20
WINDOW_SECONDS = 60.0
MOST_ADDRESSES = 10_000

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Throttle:
    """So many failures in a minute per address; the table is bounded, and the address seen first goes first."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def failed(self, address: str) -> int | None:
        """Counts a failure; the seconds to wait when there were too many, else none."""
        now = self._clock()
        began, count = self._failures.get(address, (now, 0))
        if now - began >= WINDOW_SECONDS:
            del self._failures[address]
            began, count = now, 0
        # Counting on beyond the limit would tell nothing more.
        self._failures[address] = (began, min(count + 1, FAILURES + 1))
        while len(self._failures) > MOST_ADDRESSES:
            self._failures.popitem(last=False)
        return math.ceil(began + WINDOW_SECONDS - now) if count >= FAILURES else None

    def __len__(self) -> int:
        return len(self._failures)


def client_address(peer: str | None, forwarded_for: Sequence[str], trusted: Sequence[Network]) -> str:
    """Who asks: the peer, or, behind proxies that we trust, the right-most address that is not one of them.

    What stands further left was written by whoever sent the request, and may be a lie.
    """
    nearest = _read(peer or "")
    if nearest is None:
        return "unknown"
    hops = [hop for header in forwarded_for for hop in header.split(",")]
    while hops and any(nearest in network for network in trusted):
        said = _read(hops.pop())
        if said is None:
            break
        nearest = said
    return _group(nearest)


def _read(text: str) -> Address | None:
    """An address as proxies write it: bare, with a port, in brackets."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _group(address: Address) -> str:
    """One IPv6 client owns a whole /64 of addresses."""
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.IPv6Network((int(address) >> 64 << 64, 64)))
    return str(address)
