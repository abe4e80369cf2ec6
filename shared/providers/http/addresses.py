"""Which addresses may be spoken to: public ones, and the private ones that the operator has named."""

import logging
import socket
from collections.abc import Iterable
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Self
from urllib.parse import urlsplit

from windlass.shared.errors import Forbidden
from windlass.shared.settings import Settings

log = logging.getLogger(__name__)

IPAddress = IPv4Address | IPv6Address
IPNetwork = IPv4Network | IPv6Network

NAT64 = ip_network("64:ff9b::/96")
GLOBAL_UNICAST = ip_network("2000::/3")
"""All that IPv6 has handed out. Python calls much of the rest global, from site-local to embedded IPv4 addresses."""

SET_APART = tuple(
    ip_network(network)
    for network in (
        "168.63.129.16/32",  # what virtual machines at Azure ask for their secrets
        "192.0.0.0/24",  # protocol assignments, and the metadata of Oracle's cloud
        "192.88.99.0/24",  # relays from the days of 6to4
        "2001::/23",  # Teredo and other wrappings
        "3fff::/20",  # documentation
    )
)


@dataclass(frozen=True)
class Allowances:
    """The private addresses that may be used all the same, and origins (host and port) that were configured by us."""

    networks: tuple[IPNetwork, ...] = ()
    origins: frozenset[tuple[str, int]] = frozenset()

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """What `[network] allow_private` names, the fake provider server where there is one, and our own address: a
        picture that Windlass keeps may be what an order begins with, and on a laptop its URL is a private one."""
        return cls(
            tuple(ip_network(each, strict=False) for each in settings.network.allow_private),
            frozenset(origin_of(url) for url in (settings.fake_providers_url, settings.address) if url is not None),
        )

    @classmethod
    def for_webhooks(cls, settings: Settings) -> Self:
        """Only `[network] allow_private`: a user names these URLs, so neither our own address nor the fake provider
        server is allowed."""
        return replace(cls.of(settings), origins=frozenset())

    def cover(self, host: str, port: int, address: IPAddress) -> bool:
        if (host.lower(), port) in self.origins:
            return True
        return any(each in network for network in self.networks for each in (address, unwrapped(address)))


def origin_of(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return (parts.hostname or "").lower(), parts.port or (443 if parts.scheme == "https" else 80)


def unwrapped(address: IPAddress) -> IPAddress:
    """The IPv4 address that an IPv6 address leads to, where it is a wrapping of one."""
    if isinstance(address, IPv4Address):
        return address
    if address in NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def is_public(address: IPAddress) -> bool:
    """Whether it belongs to somebody on the internet: not to this machine, its network or its cloud's metadata."""
    address = unwrapped(address)
    if isinstance(address, IPv6Address) and address not in GLOBAL_UNICAST:
        return False
    if address.is_multicast or address.is_reserved or any(address in network for network in SET_APART):
        return False
    return address.is_global


def check(host: str, port: int, addresses: Iterable[str], allowances: Allowances, *, plain: bool = False) -> None:
    """Refuses a host if any of the addresses that its name stands for is out of bounds. Without encryption (`plain`)
    every public address is: what is sent there carries keys, and what comes back could be anybody's.

    Where a name leads inside our own network is for the log: whoever may submit a task reads the error."""
    for each in addresses:
        fault = _fault_of(host, port, ip_address(each), allowances, plain=plain)
        if fault == PRIVATE:
            log.warning("%s was not spoken to: its address %s is private", host, each)
        if fault is not None:
            raise Forbidden(fault.format(host=host), host=host)


PRIVATE = "{host} is at a private address, which is not spoken to; the operator can allow it in [network] allow_private"
PLAIN = "{host} must be spoken to over https, not plain http"


def _fault_of(host: str, port: int, address: IPAddress, allowances: Allowances, *, plain: bool) -> str | None:
    if allowances.cover(host, port, address):
        return None
    if not is_public(address):
        return PRIVATE
    return PLAIN if plain else None


def fault_of_literal(url: str, allowances: Allowances) -> str | None:
    """Why a URL whose host is an address can never be used; None when it can, or when the host is a name, whose
    addresses are checked each time it is resolved. The URL has passed `check_url`."""
    import httpx  # noqa: PLC0415 - an api that is given no addresses does without it

    parts = httpx.URL(url)
    host = parts.raw_host.decode("ascii").removesuffix(".")
    address = literal_address(host)
    if address is None:
        return None
    plain = parts.scheme == "http"
    fault = _fault_of(host, parts.port or (80 if plain else 443), address, allowances, plain=plain)
    return None if fault is None else fault.format(host=host)


def literal_address(host: str) -> IPAddress | None:
    """The address that a host is written as, in every form that resolvers read: 127.1, 0x7f000001, 017700000001 and
    2130706433, too. None for a name."""
    try:
        return ip_address(host)
    except ValueError:
        pass
    try:
        return IPv4Address(socket.inet_aton(host))
    except OSError:
        return None
