"""The agent actor: runs an operator's command on a client's prompt, and does not let go before all of it is gone."""

import json
import logging
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from windlass.actors import actor
from windlass.services.actors.agent import sandbox
from windlass.services.actors.agent.limits import for_the_kernel, for_the_watcher, lowered
from windlass.services.actors.agent.notices import notices
from windlass.services.actors.agent.outcome import Ended, result_of
from windlass.services.actors.agent.output import Output
from windlass.services.actors.agent.programs import closed_to
from windlass.services.actors.agent.recall import recall
from windlass.services.actors.agent.sandbox import Network, Sandbox
from windlass.services.actors.agent.workplace import Workplaces
from windlass.services.actors.subprocess import outside
from windlass.services.actors.subprocess.endings import exit_code_of, with_last_words
from windlass.services.actors.subprocess.ladder import Ladder
from windlass.services.actors.subprocess.run import Order, Run
from windlass.services.actors.succession.whereabouts import own_mark
from windlass.services.actors.worker.context.context import Context, Stopped
from windlass.shared.actors.payloads import AgentPayload
from windlass.shared.errors import InvalidInput, SubprocessFailed, TimedOut
from windlass.shared.metrics.providers import AGENT_KILLS
from windlass.shared.process.accounts import Account, account_for_agents
from windlass.shared.process.procfs import ProcessIdentity
from windlass.shared.settings import Settings
from windlass.shared.store.reading import events
from windlass.shared.toml_tables import AgentLimits, AgentSettings

log = logging.getLogger("actors.agent")

EARLIER_OUTPUT_BYTES = 65_536
DRAIN_SECONDS = 0.2
LISTEN_SECONDS = 0.1
"""How long a request to stop may go unnoticed while the agent is silent."""

TIMED_OUT = "timed out"
ENDED_BY_ITSELF = "ended by itself and left processes behind"

KILLED_FOR = {
    "cancelled": "cancelled",
    "stopping": "stopped",
    "lost": "lost",
    TIMED_OUT: "timeout",
    "memory_mb": "memory",
    "cpu_seconds": "cpu",
    "processes": "processes",
    "file_mb": "disk",
    "files": "files",
    ENDED_BY_ITSELF: "leftovers",
}
"""The reasons of a proof, in the words of the metrics."""


@dataclass(frozen=True)
class Job:
    """One attempt's agent: who it is, what it may use, and where it works."""

    name: str
    settings: AgentSettings
    limits: AgentLimits
    place: Path
    box: Sandbox | None


@actor
class Agent:
    """One per worker process, where a killed keeper's orphans fall to the guardian: unless `is_guarded` is false."""

    def __init__(self, settings: Settings, *, is_guarded: bool = True) -> None:
        self._settings = settings
        for reason in KILLED_FOR.values():
            AGENT_KILLS.labels(reason)
        self._guardian_pid = os.getppid() if is_guarded else None
        data = settings.data_dir.absolute()
        own = ProcessIdentity.of(os.getpid())
        assert own is not None
        self._account = account_for_agents()
        self._workplaces = Workplaces(data / "agents", own, self._account)
        self._workplaces.clear_leftovers()
        self._sandbox, self._why_no_sandbox = _working_sandbox(data, self._account)
        self._way_out = outside.find() if self._sandbox else None
        for notice in notices(settings, self._why_no_sandbox, leads_outside=self._way_out is not None):
            log.warning("%s", notice)

    def __call__(self, context: Context, payload: AgentPayload) -> dict[str, Any]:
        name = payload.subagent_type
        settings = self._configured(name)
        box = self._sandbox_for(name)
        stdin = self._stdin(context, payload, settings)
        place = self._workplaces.make(context.task_id, context.task.attempt)
        job = Job(name, settings, lowered(settings.limits, payload.limits), place, box)
        try:
            return self._run(context, job, stdin)
        finally:
            self._workplaces.discard(place)

    def _configured(self, name: str) -> AgentSettings:
        """What was accepted under other settings may be unknown by now."""
        agent = self._settings.agents.get(name)
        if agent is None:
            known = ", ".join(sorted(self._settings.agents))
            raise InvalidInput(f"no agent is called {name}; configured: {known}")
        return agent

    def _sandbox_for(self, name: str) -> Sandbox | None:
        wanted = self._settings.sandbox_of(name)
        if wanted == "required" and self._sandbox is None:
            raise InvalidInput(
                f"agent {name} may only run in a sandbox, and there is none: {self._why_no_sandbox}. "
                f"It runs without one if sandbox in [agents.{name}], or WINDLASS_AGENT_SANDBOX for all, is best-effort"
            )
        return None if wanted == "off" else self._sandbox

    def _stdin(self, context: Context, payload: AgentPayload, agent: AgentSettings) -> bytes:
        task = context.task
        document: dict[str, Any] = {
            "task_id": str(task.task_id),
            "attempt": task.attempt,
            **payload.model_dump(include={"prompt", "system_prompt", "model", "params"}),
        }
        if task.attempt > 1:
            earlier = context.ask(
                events.earlier_output, task.task_id, before_attempt=task.attempt, most_bytes=EARLIER_OUTPUT_BYTES
            )
            if earlier:
                document["previous_output"] = earlier
        document |= recall(context, payload.prompt, agent)
        return json.dumps(document, ensure_ascii=False, default=str).encode(errors="replace") + b"\n"

    def _order(self, context: Context, job: Job) -> Order:
        environment = {
            "PATH": job.settings.path,
            "HOME": str(job.place),
            "LANG": "C.UTF-8",
            "TMPDIR": str(job.place / "tmp"),
            **job.settings.env,
            "WINDLASS_TASK_ID": str(context.task_id),
            **own_mark(),
        }
        program, *arguments = (each.replace("{task_id}", str(context.task_id)) for each in job.settings.command)
        found = job.settings.find(program)
        if found is None:
            raise InvalidInput(f"agent {job.name} cannot be started: there is no program {program}")
        command = (os.path.abspath(found), *arguments)  # noqa: PTH100 - links are to be kept
        account = self._account
        owner = None if account is None else (account.uid, account.gid)
        limits = for_the_kernel(job.limits, user=os.geteuid() if account is None else account.uid)
        if job.box is not None:
            network = self._network_for(job.settings)
            command = job.box.wrap(command, job.place, network=network)
            way_out = self._way_out if network is Network.OUTSIDE else None
            own = Sandbox.PROCESSES + (outside.PROCESSES if way_out else 0)
            watch = for_the_watcher(job.limits, own_processes=own, place=job.place)
            return Order(
                command,
                environment,
                str(job.place),
                limits,
                watch,
                owner,
                run_as=None,
                is_sandboxed=True,
                way_out=way_out,
            )
        if account is not None and (closed := closed_to(account, command, job.place)) is not None:
            raise InvalidInput(
                f"agent {job.name} cannot be started: without a sandbox, root runs agents as {account.name}, who may "
                f"not read {closed}. Put it where everybody may, or run Windlass as an ordinary user"
            )
        watch = for_the_watcher(job.limits, own_processes=0, place=job.place)
        return Order(command, environment, str(job.place), limits, watch, owner, owner)

    def _network_for(self, agent: AgentSettings) -> Network:
        """The machine's own where it is asked for by name, or where nothing leads outside alone."""
        if not agent.network:
            return Network.NONE
        return Network.HOST if agent.network == "host" or self._way_out is None else Network.OUTSIDE

    def _run(self, context: Context, job: Job, stdin: bytes) -> dict[str, Any]:
        output = Output(context, largest_result_bytes=self._settings.largest_result_bytes)
        run = Run(self._order(context, job), stdin, output)
        context.usage(cost_usd=self._settings.providers[context.task.provider].price_per_call)
        reason: str | None = "the worker failed"
        try:
            reason = _follow(run, context)
        finally:
            # Whatever happened: first all of it is gone, then the rest of its words is read, and then the task ends.
            why = reason or run.exceeded or ENDED_BY_ITSELF
            context.proof = self._ladder(run, job).clear(why)
            if context.proof is not None:
                AGENT_KILLS.labels(KILLED_FOR.get(why, "other")).inc()
            run.drain(until=time.monotonic() + DRAIN_SECONDS)
            run.close()
        if run.status is not None:
            context.exit_code = exit_code_of(run.status)
        if reason == TIMED_OUT:
            message = f"agent {job.name} took longer than its {context.task.timeout_seconds:g} s"
            raise TimedOut(with_last_words(message, output.stderr()), stderr=output.stderr())
        if reason is not None and reason == context.stop_reason:
            raise Stopped
        if run.failure is not None:
            raise SubprocessFailed(f"agent {job.name} could not be started: {run.failure}")
        if context.exit_code is None:
            raise SubprocessFailed(f"agent {job.name} has killed the process that keeps it", stderr=output.stderr())
        ended = Ended(context.exit_code, run.largest_kb * 1024, run.largest_data_bytes, run.exceeded)
        return result_of(job.name, job.settings, job.limits, ended, output)

    def _ladder(self, run: Run, job: Job) -> Ladder:
        return Ladder(
            run,
            sandboxed=job.box is not None,
            grace_seconds=self._settings.agent_grace_seconds,
            guardian_pid=self._guardian_pid,
        )


def _follow(run: Run, context: Context) -> str | None:
    """Until the agent has ended, or has to: then the reason is returned."""
    while not run.has_ended and run.exceeded is None:
        if context.stop_reason is not None:
            return context.stop_reason
        if (left := context.deadline - time.monotonic()) <= 0:
            return TIMED_OUT
        run.pump(min(left, LISTEN_SECONDS))
    return None


def _working_sandbox(data: Path, account: Account | None) -> tuple[Sandbox | None, str]:
    """Tried once, as this process starts: namespaces may be forbidden where it runs."""
    found = sandbox.find(data, account)
    if found is None:
        return None, "bubblewrap is not installed"
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "tmp").mkdir()
        problem = found.check(Path(directory))
    return (found, "") if problem is None else (None, f"bubblewrap does not work here ({problem})")
