"""One data directory and everything that runs on it, in the order in which the parts need each other."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

from windlass.services.laptop.address import Address, choose_address
from windlass.services.laptop.api_health import ApiHealth
from windlass.services.laptop.data_directory import locked, shortage
from windlass.services.laptop.fake_providers import answers, are_needed, choose_url
from windlass.services.laptop.metrics_targets import MetricsTargets
from windlass.services.laptop.ports import LOOPBACK
from windlass.services.laptop.reloading.registering import check, mistake_in, register
from windlass.services.laptop.reloading.reload import UNCACHED, Reload
from windlass.services.laptop.reloading.sources import named, places_of
from windlass.services.laptop.runfile import RunFile
from windlass.services.laptop.servers.choice import Server, choose_postgres, choose_rabbitmq
from windlass.services.laptop.sign_in import sign_in_link
from windlass.services.laptop.supervision.children import Children
from windlass.services.laptop.supervision.console import Console
from windlass.services.laptop.supervision.leftovers import ProcessNotes, clear_leftovers
from windlass.services.laptop.supervision.service import Liveness, Service
from windlass.services.laptop.supervision.supervisor import Supervisor
from windlass.services.laptop.supervision.unit import StartFailure, ending
from windlass.shared.process.procfs import descendants
from windlass.shared.settings import OWN, Settings

STOP_SECONDS: Final = 10.0
AGENTS: Final = "agents"


class Installation:
    def __init__(self, settings: Settings, console: Console, *, reload: bool = False) -> None:
        self._settings = settings
        self._reload = Reload(_places(settings), console.say) if reload else None
        self._console = console
        self._directory = settings.data_dir.absolute()
        self._notes = ProcessNotes(self._directory / "processes.json")
        self._run_file = RunFile(self._directory / "run.json")
        self._targets = MetricsTargets(self._directory / "metrics-targets.json")
        self._children = Children(self._notes.write, self._notes.mark)
        self._actors: tuple[Service, ...] = ()
        self._services_environment: dict[str, str] = {}

    async def serve(self) -> None:
        """Runs until it is cancelled, and ends when nothing that it started runs any more."""
        with locked(self._directory):
            if warning := shortage(self._directory):
                self._console.say(warning)
            await clear_leftovers(self._directory / "processes.json", self._console.say)
            self._notes.write(())
            self._run_file.remove()
            self._targets.remove()
            await self._until_actors_load()
            address = choose_address(self._settings, self._directory)
            supervisor = Supervisor(self._console.say)
            try:
                async with ApiHealth(address.url, address.key) as health:
                    await supervisor.until_ready(self._start(supervisor, address, health))
                    self._run_file.write()
                    self._targets.write()
                    self._console.announce(f"windlass ready {address.url} key={address.key}")
                    if link := await sign_in_link(self._settings, address):
                        self._console.announce(f"windlass page {link} (signs in once, within 15 minutes)")
                    async with self._reloading(supervisor, health):
                        await supervisor.keep(on_restart=self._run_file.renew)
            finally:
                await supervisor.stop()
                await self._children.end_all()
                self._run_file.remove()
                self._targets.remove()
                self._notes.remove()
                self._console.say("everything has stopped")

    async def _until_actors_load(self) -> None:
        """Fails, or with `--reload` waits for a change, while the modules that `--actors` names cannot be loaded."""
        if not self._settings.actor_modules:
            return
        environment = {**os.environ, **({} if self._reload is None else UNCACHED)}
        while mistakes := sorted(await check(self._children, environment)):
            if self._reload is None:
                raise StartFailure(f"cannot load the actors: {'; '.join(mistakes)}")
            self._console.say(f"cannot load the actors; waiting for a change below {self._reload.where}")
            for mistake in mistakes:
                self._console.say(mistake)
            await self._reload.changes()

    @asynccontextmanager
    async def _reloading(self, supervisor: Supervisor, health: ApiHealth) -> AsyncIterator[None]:
        """Beside all else, for who wants it."""
        if self._reload is None:
            yield
            return

        async def start_again() -> None:
            pools = [each for each in self._actors if each.name != AGENTS]
            await asyncio.gather(*(supervisor.start_again(each, each.hand_back()) for each in pools))
            await health.until_workers(lambda pids: all(_is_at_work(each, pids) for each in pools))

        renew = partial(register, self._children, self._services_environment)
        watching = asyncio.create_task(self._reload.run(renew, start_again))
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    def hand_back(self) -> None:
        """For those in a hurry: workers wait for no running task any more, and the next start goes on with them."""
        for service in self._actors:
            service.send(signal.SIGUSR1)

    def kill(self) -> None:
        """For the impatient: Postgres recovers, and the tasks are taken up again, at the next start."""
        self._children.kill_all()

    async def _start(self, supervisor: Supervisor, address: Address, health: ApiHealth) -> None:
        settings, directory, children = self._settings, self._directory, self._children
        lines = partial(partial, self._console.line)
        postgres = choose_postgres(settings.database_url, directory, children, lines("postgres"))
        rabbitmq = choose_rabbitmq(settings.amqp_url, directory, children, lines("rabbitmq"))
        await supervisor.start(postgres, rabbitmq)

        fake_url = choose_url(settings, directory)
        environment = self._services_environment = self._environment(address, postgres, rabbitmq, fake_url)
        await self._migrate(environment, force=not settings.database_url)

        if fake_url:
            fake = self._service(
                "windlass.services.fake_providers", environment, name="providers", answers=partial(answers, fake_url)
            )
            await supervisor.start(fake)
            self._run_file.add(fake, kind="fake_providers", url=fake_url)
        api = self._service(
            "windlass.services.api", environment, answers=health.is_ready, liveness=Liveness(health.is_live), told=True
        )
        dispatcher = self._service("windlass.services.dispatcher", environment, told=True)
        actors = self._actors = tuple(
            self._service(
                "windlass.services.actors", {**environment, "WINDLASS_QUEUES": ",".join(queues)}, name=name, told=True
            )
            for name, queues in actor_services(settings).items()
        )
        janitor = self._service("windlass.services.janitor", environment, told=True)
        orchestrator = self._service("windlass.services.orchestrator", environment, told=True)
        await supervisor.start(api)
        await supervisor.start(dispatcher)
        await supervisor.start(*actors)
        await supervisor.start(janitor, orchestrator)
        await health.until_healthy(self._console.say)

        self._run_file.add(api, url=address.url)
        self._run_file.add(dispatcher)
        self._run_file.add_all("actors", actors)
        self._run_file.add_all("janitor", [janitor])
        self._run_file.add_all("orchestrator", [orchestrator])
        self._run_file.add(postgres, url=postgres.url)
        self._run_file.add(rabbitmq, url=rabbitmq.url)

    def _service(
        self,
        module: str,
        environment: Mapping[str, str],
        *,
        name: str | None = None,
        answers: Callable[[], Awaitable[bool]] | None = None,
        liveness: Liveness | None = None,
        told: bool = False,
    ) -> Service:
        """One that is `told` to gets a port to answer Prometheus on, which asks for no key."""
        settings = self._settings
        service = module.rpartition(".")[2]
        name = name or service
        if told:
            environment = {**environment, "WINDLASS_METRICS_PORT": str(self._targets.port_for(service, name))}
            environment |= {"WINDLASS_METRICS_HOST": LOOPBACK}
        drained = (
            settings.drain_seconds + 2 * settings.stop_grace_seconds if module == "windlass.services.actors" else 0
        )
        return Service(
            name,
            module,
            self._children,
            partial(self._console.line, name),
            environment=environment,
            stop_seconds=drained + STOP_SECONDS,
            answers=answers,
            liveness=liveness,
        )

    async def _migrate(self, environment: Mapping[str, str], *, force: bool) -> None:
        """`force` is for a database of our own: its workers were killed with everything else."""
        self._console.say("migrating the database")
        command = [sys.executable, "-m", "windlass.services.admin.migrate", "--register"]
        if force:
            command.append("--force")

        def hear(line: str) -> None:
            self._console.line("migrate", line)
            if self._reload is not None and (mistake := mistake_in(line)) is not None:
                self._reload.wrong_before.add(mistake)

        finished = await self._children.run(command, environment=environment, on_line=hear)
        if finished.code != 0:
            raise StartFailure(f"the migration failed ({ending(finished.code)})")

    def _environment(
        self, address: Address, postgres: Server, rabbitmq: Server, fake_url: str | None
    ) -> dict[str, str]:
        """What the services are started with: the caller's settings, and where everything is."""
        settings = self._settings
        # Made for trying things out, a supervised Windlass lets probes crash and hang unless told otherwise.
        faults = settings.probe_faults or "probe_faults" not in settings.model_fields_set
        return {
            **os.environ,
            "PYTHONUNBUFFERED": "1",
            "WINDLASS_DATA_DIR": str(self._directory),
            "WINDLASS_DATABASE_URL": postgres.url,
            "WINDLASS_AMQP_URL": rabbitmq.url,
            "WINDLASS_PORT": str(address.port),
            "WINDLASS_API_KEY": address.key,
            "WINDLASS_PROBE_FAULTS": str(int(faults)),
            # Their lines go through a pipe and are still for people.
            "WINDLASS_LOG_FORMAT": "text" if settings.log_format == "auto" else settings.log_format,
            **({"WINDLASS_FAKE_PROVIDERS_URL": fake_url} if fake_url else {}),
            **({} if self._reload is None else UNCACHED),
        }


def actor_services(settings: Settings) -> dict[str, list[str]]:
    """The processes of actors, and the queues that each serves: agents have one of their own, so that whatever they do
    to their worker, the others' tasks go on."""
    # Nobody here loads actors of the user's own: their workers find out which queues they have.
    queues = settings.queues or (*settings.all_queues(), OWN)
    agents = [queue for queue in queues if queue.startswith("agent.")]
    others = [queue for queue in queues if queue not in agents]
    count = settings.actor_processes
    names = ["actors"] if count == 1 else [f"actors-{number}" for number in range(1, count + 1)]
    found = {**dict.fromkeys(names, others), AGENTS: agents}
    return {name: served for name, served in found.items() if served}


def names_of_everyone(settings: Settings) -> list[str]:
    """In the order in which they start."""
    actors = actor_services(settings)
    fake = ["providers"] if are_needed(settings) else []
    return ["postgres", "rabbitmq", "migrate", *fake, "api", "dispatcher", *actors, "janitor", "orchestrator"]


def _places(settings: Settings) -> list[Path]:
    names = named(settings)
    if not names:
        raise StartFailure("--reload watches the files of your actors, and none are named: give --actors, too")
    return places_of(names) or [Path.cwd()]  # where a module that does not exist yet would be found


def _is_at_work(pool: Service, workers: set[int]) -> bool:
    """Whether one of these is a worker of that pool."""
    return pool.pid is not None and any(process.pid in workers for process in descendants(pool.pid))
