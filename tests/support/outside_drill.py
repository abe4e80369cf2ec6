"""`python -m tests.support.outside_drill DIRECTORY NETWORK`: an agent on a machine that is all its own.

Started in a network of its own, which has nothing but a loopback device, it gives that device addresses of every kind
and listens on them; then an agent tries to reach each. What it reached is printed as JSON.
"""

import fcntl
import json
import socket
import struct
import sys
import threading
from pathlib import Path

from tests.support.agents_at_work import finished, settings_for

PUBLIC, PRIVATE, LINK_LOCAL, LOOPBACK = "203.0.113.7", "192.168.7.7", "169.254.169.254", "127.0.0.1"
SIOCSIFFLAGS, SIOCSIFADDR, SIOCSIFNETMASK, IFF_UP = 0x8914, 0x8916, 0x891C, 1


def main() -> None:
    directory, wanted = Path(sys.argv[1]), sys.argv[2]
    bring_up()
    listeners = {host: socket.create_server((host, 0)) for host in (PUBLIC, PRIVATE, LINK_LOCAL, LOOPBACK)}
    for listener in listeners.values():
        threading.Thread(target=greet, args=(listener,), daemon=True).start()
    addresses = [(host, listener.getsockname()[1]) for host, listener in listeners.items()]
    # By the gateway of slirp4netns one would come to the loopback of the machine, if it let one.
    addresses.append(("10.0.2.2", listeners[LOOPBACK].getsockname()[1]))
    network: bool | str = {"true": True, "false": False}.get(wanted, wanted)
    settings = settings_for(directory, sandbox="required", network=network)
    attempt = finished(settings, do="reach", addresses=addresses, timeout=60)
    print(json.dumps({"result": attempt.result, "error": attempt.error and str(attempt.error)}))


def bring_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as kernel:
        fcntl.ioctl(kernel, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
        for number, host in enumerate((PUBLIC, PRIVATE, LINK_LOCAL), 1):
            name = f"lo:{number}".encode()
            for request, address in ((SIOCSIFADDR, host), (SIOCSIFNETMASK, "255.255.255.255")):
                fcntl.ioctl(
                    kernel, request, struct.pack("16sHH4s8x", name, socket.AF_INET, 0, socket.inet_aton(address))
                )


def greet(listener: socket.socket) -> None:
    while True:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"hello")


if __name__ == "__main__":
    main()
