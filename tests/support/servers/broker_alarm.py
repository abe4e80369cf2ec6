"""RabbitMQ's memory alarm, really raised on a node that no other test uses: it takes no messages until it is over."""

import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from windlass.services.laptop.packages import find_rabbitmq
from windlass.services.laptop.servers.broker_node import NODE

USUAL = "0.4"


@contextmanager
def memory_alarm(node_pid: int) -> Iterator[None]:
    allow_memory(node_pid, "0.0000001")
    try:
        yield
    finally:
        allow_memory(node_pid, USUAL)


def allow_memory(node_pid: int, share: str) -> None:
    """As `rabbitmqctl set_vm_memory_high_watermark` does, without the seconds that it takes to start."""
    programs = find_rabbitmq()
    assert programs
    order = f"ok = rpc:call('{NODE}', vm_memory_monitor, set_vm_memory_high_watermark, [{share}]), halt()."
    # Under a new name each time: the one before may not be forgotten yet by who keeps the names.
    name = f"alarm-{uuid.uuid4().hex}@localhost"
    subprocess.run(
        [programs.erl, "-noinput", "-sname", name, "-eval", order],
        env=environment_of(node_pid),
        check=True,
        timeout=120,
    )


def environment_of(pid: int) -> dict[str, str]:
    """The node's own: its cookie and its epmd are found by it."""
    words = Path("/proc", str(pid), "environ").read_bytes().decode().split("\0")
    return dict(word.split("=", 1) for word in words if word)
