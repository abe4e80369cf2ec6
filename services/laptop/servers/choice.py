"""Which Postgres and which RabbitMQ an installation uses: somebody's, its own, or a container's."""

import asyncio
from pathlib import Path
from typing import Protocol

from windlass.services.laptop.packages import docker_answers, find_postgres, find_rabbitmq
from windlass.services.laptop.servers.containers import ContainerServer
from windlass.services.laptop.servers.postgres import PrivatePostgres
from windlass.services.laptop.servers.rabbitmq import PrivateRabbitmq
from windlass.services.laptop.supervision.children import Children, OnLine
from windlass.services.laptop.supervision.unit import Unit


class Server(Unit, Protocol):
    @property
    def url(self) -> str:
        """Where it is; known once it was started."""


class ForeignServer:
    """One that a setting names: it is used, neither started nor stopped."""

    pid = None

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self.url = url

    async def start(self) -> None:
        """Whoever connects to it waits for it and says so."""

    async def wait(self) -> str:
        await asyncio.Event().wait()
        return ""

    async def stop(self) -> None:
        """That is for those who started it."""


def choose_postgres(url: str | None, directory: Path, children: Children, on_line: OnLine) -> Server:
    private, container = directory / "postgres", directory / "containers" / "postgres"
    if url:
        return ForeignServer("postgres", url)
    if _is_for_docker(private, container, installed=find_postgres() is not None):
        return ContainerServer("postgres", container, children, on_line)
    return PrivatePostgres(private, children, on_line)


def choose_rabbitmq(url: str | None, directory: Path, children: Children, on_line: OnLine) -> Server:
    private, container = directory / "rabbitmq", directory / "containers" / "rabbitmq"
    if url:
        return ForeignServer("rabbitmq", url)
    if _is_for_docker(private, container, installed=find_rabbitmq() is not None):
        return ContainerServer("rabbitmq", container, children, on_line)
    return PrivateRabbitmq(private, children, on_line)


def _is_for_docker(private: Path, container: Path, *, installed: bool) -> bool:
    """Wherever the data already is; for a new installation, only where the programs are missing."""
    if private.exists() or container.exists():
        return container.exists()
    return not installed and docker_answers()
