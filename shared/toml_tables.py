"""The tables of the TOML file: one for each provider, one for each agent, one for the network."""

from dataclasses import dataclass
from ipaddress import ip_network
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator


class Rate(BaseModel):
    """So many calls that order work in so many seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    limit: Annotated[int, Field(ge=1)]
    per_seconds: Annotated[int, Field(ge=1, le=3600)]


class ProviderSettings(BaseModel):
    """One `[providers.NAME]` table: who does the work, and how much of it at once."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    actor: str
    limit: Annotated[int, Field(ge=0)] | None = None
    rate: Rate | None = None
    base_url: str | None = None
    api_key_env: str | None = None
    adapter: str | None = None
    """Who speaks to it: a file in `shared/providers`, or a module of your own (`package.module`). If left out, the file
    that has the provider's name."""
    model: str | None = None
    call_timeout_seconds: Annotated[float, Field(gt=0)] = 30
    poll_seconds: Annotated[float, Field(gt=0)] = 3
    when_unknown: Literal["fail", "resubmit"] = "fail"
    """What becomes of a task whose order may or may not have arrived, when that cannot be found out."""
    callback_key_env: str | None = None
    """For providers that call back to one address for all jobs: the variable with the key that they send."""


@dataclass(frozen=True)
class Endpoint:
    """Where a provider is reached, and with which key."""

    base_url: str
    api_key: str
    is_fake: bool = False


SandboxMode = Literal["required", "best-effort", "off"]


class AgentLimits(BaseModel):
    """What one agent may use at most, with all of its processes; none is no limit."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    memory_mb: Annotated[int, Field(ge=1)] | None = 2048
    cpu_seconds: Annotated[int, Field(ge=1)] | None = 3600
    file_mb: Annotated[int, Field(ge=1)] | None = 1024
    """Of everything in its directory and its tmp together, and of each file that it writes anywhere."""
    processes: Annotated[int, Field(ge=1)] | None = 128
    files: Annotated[int, Field(ge=1)] | None = 200_000
    """How many, directories too, in its directory and its tmp together."""


class AgentSettings(BaseModel):
    """One `[agents.NAME]` table: the command that is run for a `subagent_type`, and what it may do."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: Annotated[tuple[str, ...], Field(min_length=1)]
    timeout_seconds: Annotated[float, Field(gt=0)] | None = None
    limits: AgentLimits = AgentLimits()
    sandbox: SandboxMode | None = None
    """If left out, what `WINDLASS_AGENT_SANDBOX` says. `required` refuses to run where no sandbox can be made,
    `best-effort` runs without one there, `off` everywhere."""
    network: bool | Literal["host"] = False
    """If false, it has a network of its own with nobody in it. If true, public addresses alone where it has a sandbox
    and slirp4netns is installed, else as `"host"`: the network of the machine as it is, with whatever listens on its
    loopback addresses, and a cloud's metadata at 169.254.169.254."""
    env: dict[str, str] = Field(default_factory=dict)
    permanent_exit_codes: tuple[int, ...] = ()


class NetworkSettings(BaseModel):
    """The `[network]` table."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    allow_private: tuple[str, ...] = ()
    """Private addresses or networks that providers, downloads and webhooks may use all the same."""

    @field_validator("allow_private")
    @classmethod
    def _are_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for each in value:
            ip_network(each, strict=False)
        return value
