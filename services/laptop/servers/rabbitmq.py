"""A private RabbitMQ: on loopback only, with its own node, ports, cookie, user and epmd."""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

from windlass.services.laptop.packages import find_rabbitmq
from windlass.services.laptop.ports import LOOPBACK, free_port, kept_port
from windlass.services.laptop.servers.broker_node import USER, VIRTUAL_HOST, NodeFiles, NodePorts
from windlass.services.laptop.supervision.children import Child, Children
from windlass.services.laptop.supervision.unit import StartFailure, ending

STOP_SECONDS: Final = 20
PROTOCOL_HEADER: Final = b"AMQP\x00\x00\x09\x01"


class PrivateRabbitmq:
    name = "rabbitmq"

    def __init__(
        self,
        directory: Path,
        children: Children,
        on_line: Callable[[str], None],
        *,
        management: bool = False,
    ) -> None:
        programs = find_rabbitmq()
        if programs is None:
            raise StartFailure("the programs of the message broker are missing: install rabbitmq-server")
        self._programs = programs
        self._files = NodeFiles(directory)
        self._children = children
        self._on_line = on_line
        self._management = management
        self._ports: NodePorts | None = None
        self._epmd: Child | None = None
        self._node: Child | None = None

    @property
    def pid(self) -> int | None:
        return self._node.pid if self._node else None

    @property
    def url(self) -> str:
        return f"amqp://{self._credentials}@{LOOPBACK}:{self._known_ports.amqp}/{VIRTUAL_HOST}"

    @property
    def management_url(self) -> str | None:
        port = self._known_ports.management
        return f"http://{self._credentials}@{LOOPBACK}:{port}" if port else None

    async def start(self) -> None:
        # Restarted under running clients, it must come back where they look for it.
        self._ports = self._ports or self._choose_ports()
        self._files.write_configuration(self._ports)
        environment = self._files.environment(self._programs, self._ports)
        self._epmd = self._children.start(
            [self._programs.epmd, "-port", str(self._ports.epmd), "-address", LOOPBACK],
            environment=environment,
            on_line=self._on_line,
            directory=self._files.directory,
        )
        # What it says before its configured log begins is of interest only when it does not start.
        with self._files.boot_log.open("w") as boot_log:
            self._node = self._children.start(
                [self._programs.server],
                environment=environment,
                on_line=self._on_line,
                directory=self._files.directory,
                stdout=boot_log.fileno(),
            )
        await self._until_it_answers(self._node, self._ports)

    async def wait(self) -> str:
        return ending(await self._node.wait()) if self._node else "not started"

    async def stop(self) -> None:
        if self._node and not await self._children.stop(self._node, signal.SIGTERM, STOP_SECONDS):
            self._on_line(f"did not stop within {STOP_SECONDS} s and was killed")
        if self._epmd:
            await self._children.end(self._epmd)

    @property
    def _credentials(self) -> str:
        return f"{USER}:{self._files.password}"

    @property
    def _known_ports(self) -> NodePorts:
        if self._ports is None:
            raise RuntimeError("RabbitMQ has no address before it was started")
        return self._ports

    def _choose_ports(self) -> NodePorts:
        return NodePorts(
            amqp=kept_port(self._files.directory / "port"),
            epmd=free_port(),
            distribution=free_port(),
            management=free_port() if self._management else None,
        )

    async def _until_it_answers(self, node: Child, ports: NodePorts) -> None:
        """As long as it takes: after a crash it may have to rebuild the index of a long queue."""
        while not (await _speaks_amqp(ports.amqp) and (not ports.management or await _listens(ports.management))):
            if node.has_ended:
                boot_log = self._files.boot_log.read_text(errors="replace").strip()
                raise StartFailure(f"RabbitMQ ended before it was ready ({await self.wait()}):\n{boot_log}")
            await asyncio.sleep(0.1)


async def _speaks_amqp(port: int) -> bool:
    """Whether a broker answers the protocol header with the beginning of a handshake."""
    try:
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
    except OSError:
        return False
    try:
        writer.write(PROTOCOL_HEADER)
        async with asyncio.timeout(5):
            return bool(await reader.read(1))
    except (OSError, TimeoutError):
        return False
    finally:
        writer.close()


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(LOOPBACK, port)
    except OSError:
        return False
    writer.close()
    return True
