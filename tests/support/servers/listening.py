"""Which addresses a set of processes listens on, as the kernel tells it."""

import contextlib
import ipaddress
import re
import socket
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

LISTENING = "0A"


def listening_addresses(pids: Iterable[int]) -> set[str]:
    """The IP addresses, IPv4 and IPv6, on which any of them accepts connections."""
    theirs = {inode for pid in pids for inode in _sockets(pid)}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENING and fields[9] in theirs:
                found.add(_address(fields[1].split(":")[0]))
    return found


def is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address).is_loopback


def _sockets(pid: int) -> Iterator[str]:
    # A process may end, and a descriptor be closed, while we look.
    with contextlib.suppress(OSError):
        for descriptor in Path("/proc", str(pid), "fd").iterdir():
            with contextlib.suppress(OSError):
                if match := re.fullmatch(r"socket:\[(\d+)\]", str(descriptor.readlink())):
                    yield match[1]


def _address(hexadecimal: str) -> str:
    """The kernel prints 32-bit words in the machine's own byte order."""
    words = [int(hexadecimal[at : at + 8], 16) for at in range(0, len(hexadecimal), 8)]
    packed = struct.pack(f"={len(words)}I", *words)
    return socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed)
