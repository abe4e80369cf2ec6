"""The tables of the TOML file: one for each provider, agent and actor, and those that there is one of."""

import shutil
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, ValidationInfo, field_validator, model_validator

from windlass.shared.concurrency_keys import is_pointer
from windlass.shared.forms import Form
from windlass.shared.retry_delays import Schedules

DEFAULT_ACTORS: dict[str, dict[str, Any]] = {
    "agent": {
        "module": "windlass.services.actors.agent.actor",
        "provider": "local",
        "timeout_seconds": 1800,
        "memory": True,
    },
    "embed": {
        "module": "windlass.services.actors.embed.actor",
        "provider": "hash",
        "timeout_seconds": 120,
    },
    "media": {"module": "windlass.services.actors.media.actor", "timeout_seconds": 900, "memory": True},
    "probe": {"module": "windlass.services.actors.probe", "provider": "probe", "timeout_seconds": 300},
    "summarize": {
        "module": "windlass.services.actors.summarize.actor",
        "provider": "openrouter",
        "timeout_seconds": 120,
        "max_age_seconds": 3600,  # who still wants a summary after an hour?
        "memory": True,
    },
    "webhook": {
        "module": "windlass.services.actors.webhook.actor",
        "provider": "http",
        "timeout_seconds": 30,
        "max_retries": 9,
        "retries": {"other": (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)},
        "concurrency": {"key": "/endpoint", "limit": 2},  # a delivery's key is its endpoint, whatever its payload says
    },
}
"""Those that come with Windlass, in tables as anybody's own have them. A task of `media` names its provider."""


class Table(Form):
    """Keys that nobody knows are mistakes."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Rate(Table):
    """So many starts in so many seconds."""

    limit: Annotated[int, Field(ge=0, le=1_000_000, description="So many starts; 0 starts nothing.")]
    per_seconds: Annotated[int, Field(ge=1, le=3600, description="In so many seconds.")]


class ProviderSettings(Table):
    """One `[providers.NAME]` table: who does the work, and how much of it at once."""

    actor: str | None = Field(None, description="The kind of work that it does, where that is one: an actor's name.")
    actors: tuple[str, ...] = Field(
        None,  # becomes the one that `actor` names
        validate_default=True,
        description="The kinds of work that it does, instead of `actor`; each has a queue of its own, and limit, rate, "
        "breaker and pause are for all of them together.",
    )
    limit: Annotated[int, Field(ge=0)] | None = Field(
        None, description="How many tasks hold a slot at once; no limit if left out, and 0 starts nothing."
    )
    rate: Rate | None = Field(None, description="How many tasks may start in a time, over all workers.")
    base_url: str | None = Field(None, description="Where its API is.")
    api_key_env: str | None = Field(
        None, description="The variable with the key for it; with the adapter `openai` none is sent if left out."
    )
    adapter: str | None = Field(
        None,
        description="Who speaks to it: `openai` for chat completions in that shape, another file in "
        "`shared/providers`, or a module of your own (`package.module`); the file with the provider's name if left "
        "out.",
    )
    model: str | None = Field(None, description="The model for tasks that name none.")
    call_timeout_seconds: Annotated[float, Field(gt=0)] = Field(30, description="How long one call may take.")
    poll_seconds: Annotated[float, Field(gt=0)] = Field(
        3,
        description="How often an open job is asked about; every 10 to 60 s while its provider's callbacks arrive.",
    )
    callback_wait_seconds: Annotated[float, Field(ge=0)] = Field(
        900,
        description="How long its callback is waited for when the answer to an order was lost, where the adapter says "
        "that it calls back and it cannot be asked: as long as its jobs may take. The slot is held meanwhile; 0 does "
        "not wait.",
    )
    when_unknown: Literal["fail", "resubmit"] = Field(
        "fail",
        description="What becomes of a task whose order may or may not have arrived, when that cannot be found out and "
        "no callback tells: `fail` ends it as `SubmitUnknown`, `resubmit` orders once more.",
    )
    callback_key_env: str | None = Field(
        None,
        description="For providers that call back to one address for all jobs: the variable with the key they send.",
    )
    price_per_call: Annotated[float, Field(ge=0, le=1_000_000)] | None = Field(
        None,
        description="Dollars for each order, each start of an agent and each call for a summary whose cost it does not "
        "tell itself: added to the task's `usage`.",
    )
    retries: Schedules = Field(Schedules(), description="Delays by type of error.")

    @field_validator("actors", mode="before")
    @classmethod
    def _are_said_once(cls, names: Any, info: ValidationInfo) -> Any:
        actor = info.data.get("actor")
        if names is not None and actor is not None:
            raise ValueError(f'`actor` is there as well; leave it out and write ["{actor}", …]')
        if names is None and "actor" in info.data and actor is None:
            raise ValueError(f"give these, or one as `actor`; there are {', '.join(DEFAULT_ACTORS)}")
        if names is None:
            return () if actor is None else (actor,)
        if not names:
            raise ValueError(f"must name somebody; there are {', '.join(DEFAULT_ACTORS)}")
        return names

    @field_validator("actors")
    @classmethod
    def _are_different(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"{name} is there twice")
        return names


@dataclass(frozen=True)
class Endpoint:
    """Where a provider is reached, and with which key."""

    base_url: str
    api_key: str
    is_fake: bool = False


SandboxMode = Literal["required", "best-effort", "off"]


class AgentLimits(Table):
    """What one agent may use at most, with all of its processes."""

    memory_mb: Annotated[int, Field(ge=1)] | None = Field(2048, description="Megabytes of memory.")
    cpu_seconds: Annotated[int, Field(ge=1)] | None = Field(3600, description="Seconds of CPU time.")
    file_mb: Annotated[int, Field(ge=1)] | None = Field(
        1024,
        description="Megabytes of everything in its directory and its tmp together, and of each file that it writes "
        "anywhere.",
    )
    processes: Annotated[int, Field(ge=1)] | None = Field(128, description="Processes at once.")
    files: Annotated[int, Field(ge=1)] | None = Field(
        200_000, description="How many files and directories in its directory and its tmp together."
    )


AGENT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The `PATH` of an agent whose `env` has none."""


class AgentSettings(Table):
    """One `[agents.NAME]` table: the command that is run for a `subagent_type`, and what it may do."""

    command: Annotated[tuple[str, ...], Field(min_length=1)] = Field(description="The program and its arguments.")
    timeout_seconds: Annotated[float, Field(gt=0)] | None = Field(
        None, description="What its tasks get, and the most that a client may ask for; the actor's if left out."
    )
    limits: AgentLimits = Field(AgentLimits(), description="What it may use at most.")
    sandbox: SandboxMode | None = Field(
        None,
        description="`required` refuses to run where no sandbox can be made, `best-effort` runs without one there, "
        "`off` everywhere; what `WINDLASS_AGENT_SANDBOX` says if left out.",
    )
    network: bool | Literal["host"] = Field(
        default=False,
        description="If false, it has a network of its own with nobody in it. If true, public addresses alone where it "
        'has a sandbox and slirp4netns is installed, else as `"host"`: the network of the machine as it is, with '
        "whatever listens on its loopback addresses, and a cloud's metadata at 169.254.169.254.",
    )
    env: dict[str, str] = Field(default_factory=dict, description="Variables of its environment.")
    memory: Annotated[int, Field(ge=0, le=50)] = Field(
        0, description="So many events of its user that are nearest to the prompt are on its stdin, as `memories`."
    )
    stats: Annotated[int, Field(ge=0, le=366)] = Field(
        0,
        description="The figures of its user's last so many days are on its stdin, as `stats`; for what the owner "
        "`system` runs, everybody's.",
    )
    permanent_exit_codes: tuple[int, ...] = Field((), description="After these it is not tried again.")
    retries: Schedules = Field(Schedules(), description="Delays by type of error.")

    @property
    def path(self) -> str:
        return self.env.get("PATH", AGENT_PATH)

    def find(self, program: str) -> str | None:
        return shutil.which(program, path=self.path)


class Concurrency(Table):
    """How many of an actor's tasks that say the same at these places of their payloads may run at once."""

    key: tuple[str, ...] = Field(
        description="Where in the payload it stands: a JSON Pointer, as `/account`, or a list of several. Tasks that "
        "say the same there have the same key; one that says nothing there has none.",
    )
    limit: Annotated[int, Field(ge=1)] = Field(description="So many of one key run at once, at each provider.")

    @field_validator("key", mode="before")
    @classmethod
    def _one_or_several(cls, pointers: Any) -> Any:
        return (pointers,) if isinstance(pointers, str) else pointers

    @field_validator("key")
    @classmethod
    def _are_pointers(cls, pointers: tuple[str, ...]) -> tuple[str, ...]:
        if not pointers:
            raise ValueError('must name a place in the payload, as "/account"')
        for pointer in pointers:
            if not is_pointer(pointer):
                raise ValueError(f'{pointer!r} is no JSON Pointer; write "/account", or "/customer/account"')
        return pointers


class ActorSettings(Table):
    """One `[actors.NAME]` table: where an actor of your own is found, and what holds for all tasks of an actor that do
    not say otherwise themselves. It has the last word over what the actor's code declares."""

    module: str | None = Field(
        None,
        description="Where your actor is declared: a module (`our_app.actors`), a file (`our_actors.py`), or the name "
        "of an entry point of the group `windlass.actors`.",
    )
    function: str | None = Field(
        None,
        pattern=r"^[\w.]+:[\w.]+$",
        description="Instead of `module`, a function that nobody has decorated, or a `dramatiq.actor`: "
        "`our_app.images:resize`.",
    )
    provider: str | None = Field(
        None, description="Who does the work of tasks that name nobody; if left out, one of the actor's own name."
    )
    isolate: bool | None = Field(
        None,
        description="Whether each attempt runs in a process of its own, which is killed if it does not stop; what the "
        "code declares if left out.",
    )
    timeout_seconds: Annotated[float, Field(gt=0, le=7 * 86400)] = Field(
        300, description="How long one attempt may take; what the code declares if left out."
    )
    max_age_seconds: Annotated[float, Field(ge=0, le=100 * 366 * 86400)] | None = Field(
        None, description="Older than this a task is buried, not started; 0 is never. `[defaults]` if left out."
    )
    max_retries: Annotated[int, Field(ge=0, le=100)] | None = Field(
        None, description="So many failures are tried again; `[defaults]` if left out."
    )
    memory: bool | None = Field(
        None,
        description="Whether what its tasks did is written down and can be searched; what the code declares if left "
        "out. Off for all with WINDLASS_MEMORY=0.",
    )
    retries: Schedules = Field(Schedules(), description="Delays by type of error.")
    concurrency: Concurrency | None = Field(
        None,
        description='How many of its tasks run at once that have the same key, as `{key = "/account", limit = 2}`; no '
        "limit but the provider's if left out.",
    )


class WorkerSettings(Table):
    """The `[worker]` table: what runs in every worker process beside the actors."""

    middleware: tuple[Annotated[str, Field(pattern=r"^[\w.]+:\w+$")], ...] = Field(
        (),
        description="Dramatiq middleware of your own, as `our_app.tenants:Tenants`, made without arguments: each "
        "attempt runs between its `before_process_message` and its `after_process_message`.",
    )


class TaskDefaults(Table):
    """The `[defaults]` table: for tasks that say nothing else, nor their actor's table."""

    max_retries: int = Field(3, ge=0, le=100, description="So many failures are tried again.")
    max_age_seconds: float = Field(
        0, ge=0, le=100 * 366 * 86400, description="Older than this a task is buried, not started; 0 is never."
    )
    dedupe_ttl_seconds: float = Field(
        86400, gt=0, le=366 * 86400, description="How long a `dedupe_key` means the same task."
    )
    idempotency_ttl_seconds: float = Field(
        86400, gt=0, le=366 * 86400, description="How long an `Idempotency-Key` means the same request."
    )


Percent = Annotated[int, Field(ge=1, le=99)]
Waiting = Annotated[int, Field(ge=1)]


class LaneSettings(Table):
    """The `[lanes]` table: how starts are shared between fresh tasks and retries while both wait."""

    retry_percent: tuple[Percent, Percent, Percent] = Field(
        (30, 20, 10),
        description="What retries get while few wait, while many do, and while very many do; fresh tasks get the rest.",
    )
    many_retries: Waiting = Field(1000, description="From so many waiting retries of a provider on there are many.")
    very_many_retries: Waiting = Field(5000, description="Above so many there are very many.")

    @model_validator(mode="after")
    def _no_storm_starves_new_work(self) -> Self:
        if list(self.retry_percent) != sorted(self.retry_percent, reverse=True):
            raise ValueError(
                f"retry_percent {list(self.retry_percent)} must not grow with the retries that wait, or a storm of "
                "them would starve new work"
            )
        if self.many_retries > self.very_many_retries:
            raise ValueError(
                f"many_retries ({self.many_retries}) must not be more than very_many_retries ({self.very_many_retries})"
            )
        return self

    def retry_share(self, waiting_retries: int) -> int:
        """Percent of the starts that go to the retry lane while both lanes have work."""
        few, many, very_many = self.retry_percent
        if waiting_retries < self.many_retries:
            return few
        return many if waiting_retries <= self.very_many_retries else very_many


class NetworkSettings(Table):
    """The `[network]` table."""

    allow_private: tuple[str, ...] = Field(
        (), description="Private addresses or networks that providers, downloads and webhooks may use all the same."
    )

    @field_validator("allow_private")
    @classmethod
    def _are_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for each in value:
            ip_network(each, strict=False)
        return value
