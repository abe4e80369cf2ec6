"""The Windlass under chaos: real processes, each on links of its own, and a keeper that starts again what has died."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGCONT, SIGKILL

from tests.chaos.faults import plan as kinds
from tests.chaos.faults.plan import Place
from tests.chaos.memory.ledger import as_unit, install_ledger
from tests.chaos.record import Record
from tests.chaos.site.configuration import CALLBACK_KEY, CONFIG, LIMITS, SETTINGS
from tests.chaos.site.network import Link, Network
from tests.support.installation import Process, Windlass, answers
from tests.support.providers.fake_providers import FakeProviders
from tests.support.servers.databases import migrate
from tests.support.servers.restartable_servers import RestartableServer
from tests.support.waiting import wait_until
from windlass.services.laptop.ports import free_port
from windlass.shared.process.procfs import ProcessIdentity, descendants, initial_environment, running_processes

JOB_SECONDS = 0.6
START_SECONDS = 240
"""A dozen processes at once, on a machine that may be busy with other things."""


@dataclass(frozen=True)
class Size:
    """How many of each kind."""

    apis: int = 2
    dispatchers: int = 2
    actors: int = 3
    janitors: int = 1
    orchestrators: int = 2
    receivers: int = 0
    """Who takes webhooks: one, or none."""
    threads: int = 6


@dataclass
class Unit:
    """One process that is started again when it has died."""

    name: str
    launch: Callable[[], Process]
    process: Process = field(init=False)
    away_until: float = 0.0
    """Not before this moment is it started again, by the monotonic clock."""
    is_expected_to_end: bool = False
    starts: int = 0

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def start(self) -> None:
        self.process = self.launch()
        self.is_expected_to_end = False
        self.starts += 1

    def send(self, signum: int) -> None:
        if self.is_running:
            self.process.send_signal(signum)

    def identity(self) -> ProcessIdentity | None:
        return ProcessIdentity.of(self.process.pid) if self.is_running else None

    def below(self) -> list[ProcessIdentity]:
        return descendants(self.process.pid) if self.is_running else []


class Installation:
    """`api_url` is the clients' way in, over a link; `database_url` and `fake` are the judge's, directly."""

    def __init__(
        self,
        postgres: RestartableServer,
        amqp_url: str,
        network: Network,
        directory: Path,
        *,
        rabbitmq: RestartableServer | None = None,
        size: Size | None = None,
    ) -> None:
        """`rabbitmq` is none where it must not be killed, because others use it."""
        self.size = size or Size()
        self.record = Record()
        self.postgres, self.rabbitmq = postgres, rabbitmq
        self.database_url, self.amqp_url = postgres.url, amqp_url
        self.directory = directory
        self.books_of_steps = directory / "steps"
        self.books_of_steps.mkdir()
        (directory / "provider").mkdir()
        self.fake = FakeProviders(directory / "provider", WINDLASS_FAKE_JOB_SECONDS=str(JOB_SECONDS))
        (directory / "windlass.toml").write_text(CONFIG)
        self._windlass = Windlass(
            self.database_url,
            self.amqp_url,
            directory,
            WINDLASS_CONFIG=str(directory / "windlass.toml"),
            WINDLASS_ACTOR_THREADS=str(self.size.threads),
            STORM_STEPS_DIRECTORY=str(self.books_of_steps),
            **SETTINGS,
        )
        self.environment = self._windlass.environment
        self.links: dict[str, Link] = {}
        self._network = network
        self.units: dict[str, Unit] = {}
        self.on_unexpected_end: Callable[[str], None] = lambda _words: None
        self._build()

    @property
    def api_url(self) -> str:
        return self.links["client-api"].url

    def start(self) -> None:
        migrate(self.database_url)
        install_ledger(self.database_url)
        for unit in self.units.values():
            unit.start()
        self.fake.wait_until_answering()
        webhook = {"url": f"{self.links['provider-api'].url}/api/v1/callbacks/leonardo", "key": CALLBACK_KEY}
        self.fake.change(leonardo_webhook=webhook)
        wait_until("all is up", self._is_up, seconds=START_SECONDS, every=0.1)

    def _is_up(self) -> bool:
        client = self._windlass.client
        return answers(client) and self._windlass.health() == "healthy" and len(client.workers()) >= self.size.actors

    def keep(self) -> None:
        """Starts again what has died, as Kubernetes would; from the main thread, to which the processes are tied."""
        for unit in self.units.values():
            if unit.is_running or time.monotonic() < unit.away_until:
                continue
            if not unit.is_expected_to_end:
                self.on_unexpected_end(f"{unit.name} ended by itself, exit code {unit.process.returncode}")
            unit.start()

    def mend(self) -> None:
        """Everything flows and nobody is frozen."""
        for link in self.links.values():
            link.mend()
        for process in self._processes():
            process.send(SIGCONT)

    def stop(self) -> None:
        self._windlass.stop()
        self.fake.close()
        for process in self._processes():
            process.send(SIGKILL)

    def log(self) -> str:
        return self._windlass.log()

    def places(self) -> list[Place]:
        """What can be harmed here, and how."""
        names = {kind: tuple(name for name in self.units if name.startswith(kind)) for kind in ("api", "dispatcher")}
        actors = tuple(name for name in self.units if name.startswith("actors"))
        broker = kinds.BROKER if self.rabbitmq else ()
        return [
            Place(kinds.PROCESSES, names["api"]),
            Place(kinds.PROCESSES, names["dispatcher"]),
            Place(kinds.PROCESSES, tuple(name for name in self.units if name.startswith("janitor"))),
            Place(kinds.ORCHESTRATORS, tuple(unit.name for unit in self.of_kind("orchestrator"))),
            *([Place(kinds.PROCESSES, ("receiver",))] if self.size.receivers else []),
            Place(kinds.PROCESSES, ("provider",)),
            Place(kinds.ACTORS, actors),
            Place(kinds.ENDS, actors),
            Place(kinds.AGENTS, ("an agent",)),
            Place(kinds.POSTGRES, ("postgres",)),
            Place(broker, ("rabbitmq",)),
            Place(kinds.LINKS, tuple(self.links)),
            Place(kinds.DOORBELLS, ("rabbitmq",)),
            Place(kinds.LIMITS, tuple(LIMITS)),
        ]

    def of_kind(self, kind: str) -> list[Unit]:
        return [unit for name, unit in self.units.items() if name.startswith(kind)]

    def server(self, name: str) -> RestartableServer:
        server = self.postgres if name == "postgres" else self.rabbitmq
        assert server is not None
        return server

    def queues(self) -> list[str]:
        return [
            "media.leonardo",
            "media.midjourney",
            "summarize.openrouter",
            "agent.local",
            "probe.probe",
            "probe.narrow",
            "webhook.http",
            "embed.hash",
            "tell.tell",
            "walk.walk",
            "march.march",
            "hike.hike",
        ]

    def _build(self) -> None:
        size, names = self.size, self._names
        ports = {name: free_port() for name in names("api", size.apis)}
        addresses = [f"http://127.0.0.1:{port}" for port in ports.values()]
        self._link("client-api", *addresses)
        self._link("provider-api", *addresses)
        self._windlass.client.http.base_url = self.api_url
        for name, port in ports.items():
            self._unit(name, WINDLASS_PORT=str(port), WINDLASS_DATABASE_URL=self._to_postgres(name))
        for name in names("dispatcher", size.dispatchers):
            self._unit(name, **self._to_servers(name))
        for name in names("actors", size.actors):
            # To the provider hang-ups always pass: a provider cannot know what a network hides, and its count of open
            # chats would not be ours to answer for.
            provider = self._link(f"{name}-provider", self.fake.url, passes_hang_ups=True)
            self._unit(
                name,
                **self._to_servers(name),
                WINDLASS_FAKE_PROVIDERS_URL=provider,
                WINDLASS_PUBLIC_URL=self.links["provider-api"].url,
            )
        for name in ["janitor", *names("janitor", size.janitors)[1:]]:
            self._unit(name, **self._to_servers(name))
        for name in names("orchestrator", size.orchestrators):
            self._unit(name, WINDLASS_DATABASE_URL=as_unit(self._to_postgres(name), name))
        if size.receivers:
            self._take_webhooks()
        self.units["provider"] = Unit("provider", self.fake.launch)

    def _take_webhooks(self) -> None:
        port, directory = free_port(), self.directory / "receiver"
        directory.mkdir()
        self._link("receiver", f"http://127.0.0.1:{port}")
        settings = {"STORM_RECEIVER_PORT": str(port), "STORM_RECEIVER_DIRECTORY": str(directory)}
        self.units["receiver"] = Unit(
            "receiver", lambda: self._windlass.start("tests.chaos.webhooks.receiver", **settings)
        )

    def _unit(self, name: str, **settings: str) -> None:
        service = name.partition("-")[0]
        self.units[name] = Unit(name, lambda: self._windlass.start(service, **settings))

    def _to_servers(self, name: str) -> dict[str, str]:
        return {
            "WINDLASS_DATABASE_URL": self._to_postgres(name),
            "WINDLASS_AMQP_URL": self._link(f"{name}-rabbitmq", self.amqp_url),
        }

    def _to_postgres(self, name: str) -> str:
        return self._link(f"{name}-postgres", self.database_url)

    def _link(self, name: str, *urls: str, passes_hang_ups: bool = False) -> str:
        self.links[name] = self._network.link(name, *urls, passes_hang_ups=passes_hang_ups)
        return self.links[name].url

    @staticmethod
    def _names(kind: str, number: int) -> list[str]:
        return [f"{kind}-{each}" for each in range(1, number + 1)]

    def _processes(self) -> list[ProcessIdentity]:
        """All that were started with our directory in their environment, whoever their parents are by now. Of
        guardians and workers only root can read it: the others' are found by their descent."""
        mark = f"WINDLASS_DATA_DIR={self.directory}/".encode()
        ours = [
            process
            for process in running_processes()
            if any(variable.startswith(mark) for variable in initial_environment(process.pid))
        ]
        started = [unit.identity() for unit in self.units.values()]
        ours = list({*ours, *(process for process in started if process is not None)})
        return [*ours, *descendants(*(process.pid for process in ours))]
