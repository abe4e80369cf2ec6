"""Free TCP ports on the loopback interface."""

import errno
import os
import secrets
import socket
from collections import deque
from pathlib import Path
from typing import Final

from windlass.services.laptop.kept_files import write_kept

LOOPBACK: Final = "127.0.0.1"
# Below the range from which the kernel takes the ports of outgoing connections: while a server restarts,
# nobody's connection can sit down on its port.
CANDIDATES: Final = range(20_000, 32_000)

MOST_CLAIMS: Final = 64
"""So many of the ports that were given last are kept for those they were given to."""
_claims: Final[deque[int]] = deque()


def is_free(port: int) -> bool:
    try:
        try_port(port, LOOPBACK)
    except OSError:
        return False
    return True


def try_port(port: int, host: str) -> None:
    """Raises the OSError that a server would meet there."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        # As servers do: a connection that is still winding down does not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))


def free_port() -> int:
    for _ in range(1_000):
        port = secrets.choice(CANDIDATES)
        if is_free(port) and claim(port):
            return port
    raise OSError(f"no free port between {CANDIDATES.start} and {CANDIDATES.stop}")


def claim(port: int) -> bool:
    """Whether nobody else has been given it: who has may not listen there yet. Other processes see a claim as well, by
    a name that the kernel forgets with the process, and that no file stands for."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as mark:
        try:
            mark.bind(f"\0windlass-port-{port}")
        except OSError as error:
            return error.errno != errno.EADDRINUSE
        _claims.append(mark.detach())
    if len(_claims) > MOST_CLAIMS:
        os.close(_claims.popleft())
    return True


def kept_port(path: Path) -> int:
    """The port noted in the file if it is still free, so that addresses last, else another one."""
    try:
        port = int(path.read_text())
    except (FileNotFoundError, ValueError):
        port = 0
    if not port or not is_free(port):
        port = free_port()
        write_kept(path, str(port))
    return port
