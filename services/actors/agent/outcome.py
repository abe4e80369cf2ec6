"""How an agent's run ended, in the words that tasks end with: its result, or the error that says what to do next."""

import re
from dataclasses import dataclass
from typing import Any

from windlass.services.actors.agent.output import Output
from windlass.services.actors.subprocess.endings import signal_name_of, with_last_words
from windlass.services.actors.subprocess.watcher import MEGABYTE
from windlass.shared.errors import InvalidInput, OutOfMemory, SubprocessFailed, TaskError
from windlass.shared.toml_tables import AgentLimits, AgentSettings

NEAR_THE_LIMIT = 0.9
LEAST_LIMIT_TO_JUDGE_BY_PEAK = 64 * MEGABYTE
"""A process has its keeper's size before it becomes the agent: below this its peak says nothing."""

SAID_LAST = 2_000
NO_MEMORY = re.compile(
    r"MemoryError|cannot allocate memory|out of memory|OutOfMemory|bad_alloc|memory exhausted", re.IGNORECASE
)
LIMIT_OF_SIGNAL = {"SIGXCPU": "cpu_seconds", "SIGXFSZ": "file_mb"}
"""How the kernel says that one process has used more than it may."""


@dataclass(frozen=True)
class Ended:
    """What is known of a run that is over."""

    exit_code: int
    """As a shell says it: 128 and its number for a signal."""
    largest_bytes: int
    """The most memory of one process; resident, as the kernel measured it."""
    largest_data_bytes: int
    """The most data of one process that the watcher has seen."""
    exceeded: str | None
    """The limit for which the watcher ended it."""

    @property
    def signal_name(self) -> str | None:
        return signal_name_of(self.exit_code)

    @property
    def limit(self) -> str | None:
        """The limit that it was ended for, by whomever."""
        return self.exceeded or LIMIT_OF_SIGNAL.get(self.signal_name or "")


def result_of(name: str, agent: AgentSettings, limits: AgentLimits, ended: Ended, output: Output) -> dict[str, Any]:
    """The result; raises the error where there is none."""
    stderr = output.stderr()
    if ended.exceeded == "memory_mb" or (ended.exit_code != 0 and ran_out_of_memory(ended, limits, stderr)):
        allowed = "" if limits.memory_mb is None else f" (its limit is {limits.memory_mb} MB)"
        raise _error(OutOfMemory, f"agent {name} ran out of memory{allowed}", ended, stderr, limits)
    if ended.limit is not None:
        most = getattr(limits, ended.limit)
        raise _error(
            SubprocessFailed, f"agent {name} used more than its {ended.limit} of {most}", ended, stderr, limits
        )
    found = output.last_object()
    if (said := declared_error(found)) is not None:
        kind = InvalidInput if said["kind"] == "permanent" else SubprocessFailed
        raise _error(kind, str(said.get("message") or f"agent {name} gave up"), ended, stderr, limits)
    if ended.exit_code in agent.permanent_exit_codes:
        raise _error(InvalidInput, f"agent {name} gave up with exit code {ended.exit_code}", ended, stderr, limits)
    if ended.exit_code != 0:
        how = f"was ended by {ended.signal_name}" if ended.signal_name else f"ended with exit code {ended.exit_code}"
        raise _error(SubprocessFailed, f"agent {name} {how}", ended, stderr, limits)
    return output.as_result() if found is None else found


def declared_error(found: dict[str, Any] | None) -> dict[str, Any] | None:
    """`{"error": {"kind": …}}`, as far as the kind is one of ours: anything else is a result."""
    error = (found or {}).get("error")
    return error if isinstance(error, dict) and error.get("kind") in {"permanent", "transient"} else None


def ran_out_of_memory(ended: Ended, limits: AgentLimits, stderr: str) -> bool:
    """It says so, or it failed when it had nearly all that it may have."""
    if NO_MEMORY.search(stderr[-SAID_LAST:]):
        return True
    if limits.memory_mb is None:
        return False
    limit = limits.memory_mb * MEGABYTE
    peak = ended.largest_bytes if limit >= LEAST_LIMIT_TO_JUDGE_BY_PEAK else 0
    return max(peak, ended.largest_data_bytes) >= NEAR_THE_LIMIT * limit


def _error(kind: type[TaskError], message: str, ended: Ended, stderr: str, limits: AgentLimits) -> TaskError:
    details: dict[str, Any] = {"exit_code": ended.exit_code, "stderr": stderr}
    if ended.signal_name is not None:
        details["signal"] = ended.signal_name
    if (limit := "memory_mb" if kind is OutOfMemory else ended.limit) is not None:
        details |= {"limit": limit, "limit_value": getattr(limits, limit)}
    return kind(with_last_words(message, stderr), **details)
