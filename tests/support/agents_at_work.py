"""Agents of a test's own: the actor itself on an attempt that no worker has claimed, and what came of it."""

import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.support.waiting import wait_until
from windlass.services.actors.agent import sandbox
from windlass.services.actors.agent.actor import Agent
from windlass.services.actors.worker.context.context import Context
from windlass.shared.actors.payloads import AgentPayload
from windlass.shared.process.accounts import account_for_agents
from windlass.shared.process.procfs import ProcessIdentity
from windlass.shared.settings import Settings
from windlass.shared.store.tasks import Claimed
from windlass.shared.toml_tables import AgentSettings

UNRULY = str(Path(__file__).parent / "unruly_agent.py")
COMMAND = (shutil.which("python3", path="/usr/local/bin:/usr/bin") or sys.executable, "-I", UNRULY)
"""The machine's own Python: that of the tests may stand in a home that is closed to the account of root's agents."""


def skip_without_a_sandbox(directory: Path) -> None:
    """A machine may allow none: inside a chroot, for one, the kernel makes no namespaces. That agents which need one
    are refused there is tested elsewhere."""
    place = directory / "sandbox-check"
    (place / "tmp").mkdir(parents=True)
    found = sandbox.find(directory, account_for_agents())
    reason = "bubblewrap is not installed" if found is None else found.check(place)
    if reason is not None:
        pytest.skip(f"no sandbox works on this machine: {reason}")


LONG_ENOUGH_TO_LISTEN = 40.0
"""A grace for those who do end at a TERM, however busy the machine is."""


def settings_for(directory: Path, *, grace_seconds: float = 0.4, **agent: Any) -> Settings:
    """One agent, `unruly`, that runs without a sandbox unless the test says otherwise; a TERM is given that grace."""
    configured = AgentSettings(**{"command": COMMAND, "sandbox": "off", **agent})
    return Settings(
        data_dir=directory / "data",
        stop_grace_seconds=grace_seconds / 0.4,
        lease_seconds=600,
        largest_result_bytes=200_000,
        agents={"unruly": configured.model_dump(by_alias=True)},
    )


@dataclass
class Attempt:
    """One run of an agent. It is over when the thread is."""

    context: Context
    said: list[str] = field(default_factory=list)
    stderr: list[str] = field(default_factory=list)
    progress: list[tuple[float | None, str]] = field(default_factory=list)
    result: Any = None
    error: BaseException | None = None

    @property
    def output(self) -> str:
        return "".join(self.said)

    def pids(self) -> list[int]:
        """As the agent has told them."""
        return [int(line.split()[1]) for line in self.output.splitlines() if line.startswith("pid ")]

    def heard(self, words: str) -> bool:
        self.collect()
        return words in self.output

    def collect(self) -> None:
        report = self.context.take_report()
        for event in report.events if report else ():
            data = event["data"]
            if event["type"] == "progress":
                self.progress.append((data["progress"]["percent"], data["progress"]["message"]))
            elif data.get("stream") == "stderr":
                self.stderr.append(data["text"])
            else:
                self.said.append(data.get("text") or "[cut off]\n")

    @property
    def failed(self) -> BaseException:
        assert self.error is not None, self.result
        return self.error


@contextmanager
def at_work(settings: Settings, *, limits: Any = None, timeout: float = 120, **params: Any) -> Iterator[Attempt]:
    """An agent that runs in a thread of its own while the test does something to it; it is over after the block."""
    payload = AgentPayload(subagent_type="unruly", prompt="Behave.", params=params, limits=limits)
    task = Claimed(
        task_id=uuid4(),
        claim_token=uuid4(),
        actor="agent",
        provider="local",
        payload={},
        checkpoint=None,
        attempt=1,
        retry_count=0,
        max_retries=3,
        interrupt_count=0,
        stall_count=0,
        rate_limited_count=0,
        timeout_seconds=timeout,
    )
    attempt = Attempt(Context(task, "worker-1", on_report=lambda _context: None))
    actor = Agent(settings, is_guarded=False)

    def act() -> None:
        attempt.context.begin()
        try:
            attempt.result = actor(attempt.context, payload)
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            attempt.error = error

    thread = threading.Thread(target=act)
    thread.start()
    try:
        yield attempt
    finally:
        if sys.exc_info()[0] is not None:
            attempt.context.stop()
        thread.join(180)
        attempt.collect()
    assert not thread.is_alive()


def finished(settings: Settings, **params: Any) -> Attempt:
    with at_work(settings, **params) as attempt:
        pass
    return attempt


def identities(pids: list[int]) -> list[ProcessIdentity]:
    found = [ProcessIdentity.of(pid) for pid in pids]
    assert all(found), pids
    return [each for each in found if each is not None]


def alive(processes: list[ProcessIdentity]) -> list[ProcessIdentity]:
    return [each for each in processes if each.is_running()]


def wait_until_said(attempt: Attempt, words: str) -> None:
    wait_until(f"it says {words!r}", lambda: attempt.heard(words) or attempt.error)
    assert attempt.heard(words), attempt.error
