"""Postgres or RabbitMQ from `deploy/compose.yaml`, for a machine with Docker and without their packages."""

import asyncio
import hashlib
import os
from pathlib import Path
from typing import Final, Literal

from windlass.services.laptop.kept_files import kept_secret, make_directory, random_word
from windlass.services.laptop.ports import LOOPBACK, free_port
from windlass.services.laptop.supervision.children import Children, OnLine
from windlass.services.laptop.supervision.unit import StartFailure

COMPOSE_FILE: Final = Path(__file__).parents[4] / "deploy" / "compose.yaml"
SCHEMES: Final = {"postgres": "postgresql", "rabbitmq": "amqp"}


class ContainerServer:
    """The engine keeps it running; here it is only started, asked for its address and stopped."""

    pid = None

    def __init__(
        self, name: Literal["postgres", "rabbitmq"], directory: Path, children: Children, on_line: OnLine
    ) -> None:
        self.name = name
        self._children = children
        self._on_line = on_line
        kept = make_directory(directory.absolute())
        self._password = kept_secret(kept / "password", lambda: random_word(32))
        # Its container may still be there and publish this port, so it is never chosen anew.
        self._port = kept_secret(kept / "port", lambda: str(free_port()))
        project = f"windlass-{hashlib.sha256(os.fsencode(kept)).hexdigest()[:12]}"
        self._compose = ["docker", "compose", "--project-name", project, "--file", str(COMPOSE_FILE)]

    @property
    def url(self) -> str:
        return f"{SCHEMES[self.name]}://windlass:{self._password}@{LOOPBACK}:{self._port}/windlass"

    async def start(self) -> None:
        await self._run("up", "--detach", "--wait", self.name)

    async def wait(self) -> str:
        await asyncio.Event().wait()
        return ""

    async def stop(self) -> None:
        await self._run("stop", self.name)

    async def _run(self, *arguments: str) -> None:
        variables = {
            f"WINDLASS_{self.name.upper()}_PASSWORD": self._password,
            f"WINDLASS_{self.name.upper()}_PORT": self._port,
        }
        finished = await self._children.run(
            [*self._compose, *arguments],
            environment={**os.environ, **variables},
            on_line=self._on_line,
        )
        if finished.code != 0:
            raise StartFailure(f"docker compose {' '.join(arguments)} failed with exit code {finished.code}")
