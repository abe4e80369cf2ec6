"""Everything that can be set, read once from the environment and the TOML file; nobody else reads either."""

import os
import re
import sys
import tomllib
from collections.abc import Collection
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import unquote, urlsplit

from pydantic import Field, PrivateAttr, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from windlass.shared.toml_tables import AgentSettings, Endpoint, NetworkSettings, ProviderSettings, SandboxMode

SHORTEST_SECRET = 8
"""What is shorter would be found by chance in text that has nothing to do with it."""

DEFAULT_PROVIDERS: dict[str, dict[str, Any]] = {
    "midjourney": {
        "actor": "media",
        "limit": 1,
        "base_url": "https://api.midapi.ai",
        "api_key_env": "MIDAPI_API_KEY",
    },
    "leonardo": {
        "actor": "media",
        "limit": 3,
        "base_url": "https://cloud.leonardo.ai/api/rest/v1",
        "api_key_env": "LEONARDO_API_KEY",
        "callback_key_env": "LEONARDO_CALLBACK_KEY",
    },
    "openrouter": {
        "actor": "summarize",
        "limit": 8,
        "base_url": "https://openrouter.ai/api/v1",
        "api_key_env": "OPENROUTER_API_KEY",
        "model": "openrouter/auto",
    },
    "local": {"actor": "agent", "limit": 2},
    "probe": {"actor": "probe"},
}

DEMO_AGENT = Path(__file__).parent / "demo_agent.py"
DEFAULT_AGENTS: dict[str, dict[str, Any]] = {"demo": {"command": (sys.executable, "-I", str(DEMO_AGENT))}}

SECRET_SETTINGS = ("database_url", "database_direct_url", "amqp_url", "api_key")

FAKE_KEY = "fake-provider-key"
"""What the bundled fake provider server is spoken to with."""


class Settings(BaseSettings):
    """`WINDLASS_*` variables over the file that `WINDLASS_CONFIG` names over the defaults below."""

    model_config = SettingsConfigDict(env_prefix="WINDLASS_", extra="forbid", frozen=True, hide_input_in_errors=True)

    config: Path | None = None
    data_dir: Path = Path(".windlass")
    database_url: str | None = None
    database_direct_url: str | None = None
    amqp_url: str | None = None
    api_key: str | None = Field(None, pattern=r"^wl_[0-9A-Za-z]{6,32}_[0-9A-Za-z]{24,64}$")

    host: str = "127.0.0.1"
    port: int = Field(8800, ge=0, le=65535)
    metrics_port: int | None = Field(None, ge=1, le=65535)
    metrics_host: str | None = None
    cors_origins: Annotated[tuple[str, ...], NoDecode] = ()
    trusted_proxies: Annotated[tuple[str, ...], NoDecode] = ()
    stream_ping_seconds: float = Field(15, gt=0)
    stream_patience_seconds: float = Field(10, gt=0)
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["auto", "text", "json"] = "auto"
    otlp_endpoint: str | None = Field(None, pattern=r"^https?://[^/?#]+(/[^?#]*)?$")
    trace_ratio: float = Field(1, ge=0, le=1)

    largest_body_bytes: int = Field(2_000_000, ge=1000)
    largest_payload_bytes: int = Field(1_000_000, ge=1000)
    largest_result_bytes: int = Field(5_000_000, ge=1000)
    largest_output_bytes: int = Field(10_000_000, ge=1000)
    deepest_json: int = Field(64, ge=8, le=200)
    header_seconds: float = Field(20, gt=0)
    body_seconds: float = Field(30, gt=0)

    actor_processes: int = Field(1, ge=1)
    actor_threads: int = Field(8, ge=1)
    queues: Annotated[tuple[str, ...], NoDecode] = ()
    queue_type: Literal["classic", "quorum"] = "classic"

    lease_seconds: float = Field(30, gt=0)
    heartbeat_seconds: float = Field(5, gt=0)
    stop_grace_seconds: float = Field(5, gt=0)
    lease_margin_seconds: float = Field(2, gt=0)
    drain_seconds: float = Field(20, ge=0)
    start_seconds: float = Field(60, gt=0)
    pulse_file: Path | None = None
    pulse_seconds: float = Field(15, gt=0)
    safety_poll_seconds: float = Field(15, gt=0)
    unserved_seconds: float = Field(60, gt=0)
    probe_faults: bool = False
    agent_sandbox: SandboxMode = "required"
    """For agents whose table does not say it: anything weaker is somebody's decision."""

    public_url: str | None = Field(None, pattern=r"^https?://[^/?#]+(/[^?#]*)?$")
    fake_providers_url: str | None = Field(None, pattern=r"^http://[^/?#]+$")
    fake_job_seconds: float = Field(1.5, ge=0)
    media_storage: str | None = None
    media_url_seconds: int = Field(7 * 86400, ge=60)
    largest_media_bytes: int = Field(200_000_000, ge=1000)
    abandoned_job_seconds: float = Field(900, gt=0)
    summarize_part_characters: int = Field(24_000, ge=200)

    breaker_window: int = Field(20, ge=1)
    breaker_window_seconds: float = Field(300, gt=0)
    breaker_least_results: int = Field(10, ge=1)
    breaker_failure_ratio: float = Field(0.5, gt=0, le=1)
    breaker_open_seconds: float = Field(60, gt=0)
    longest_pause_seconds: float = Field(900, gt=0)

    providers: dict[str, ProviderSettings] = Field(default_factory=dict)
    agents: dict[str, AgentSettings] = Field(default_factory=dict)
    network: NetworkSettings = NetworkSettings()

    _keys: dict[str, str] = PrivateAttr(default_factory=dict)
    """The providers', by the variables that they came in."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the signature is the library's
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings

    @field_validator("queues", "cors_origins", "trusted_proxies", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(name.strip() for name in value.split(",") if name.strip())
        return value

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for each in value:
            ip_network(each, strict=False)
        return value

    @field_validator("cors_origins")
    @classmethod
    def _exact_origins(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        for origin in origins:
            if not re.fullmatch(r"https?://[0-9A-Za-z.\-]+(:\d+)?|https?://\[[0-9a-f:]+\](:\d+)?", origin):
                raise ValueError(f"cors_origins: {origin!r} is no origin; write each one out, as https://page.example")
        return origins

    @model_validator(mode="before")
    @classmethod
    def _merge_the_file(cls, values: dict[str, Any]) -> dict[str, Any]:
        path = values.get("config")
        tables: dict[str, Any] = tomllib.loads(Path(path).read_text()) if path else {}
        providers = _merged(DEFAULT_PROVIDERS, tables.get("providers", {}), values.get("providers", {}))
        agents = _merged(DEFAULT_AGENTS, tables.get("agents", {}), values.get("agents", {}))
        return {**tables, **values, "providers": providers, "agents": agents}

    @model_validator(mode="after")
    def _keeps_the_promises(self) -> Self:
        needed = 3 * self.heartbeat_seconds + 2 * self.stop_grace_seconds + self.lease_margin_seconds
        if self.lease_seconds < needed:
            raise ValueError(
                f"lease_seconds ({self.lease_seconds:g}) must be at least 3 heartbeat_seconds + 2 stop_grace_seconds "
                f"+ lease_margin_seconds = {needed:g}, or a worker could lose a lease that it still works under"
            )
        if unknown := set(self.queues) - set(self.all_queues()):
            raise ValueError(f"queues: no provider serves {', '.join(sorted(unknown))}")
        return self

    def model_post_init(self, _context: object) -> None:
        named = (name for each in self.providers.values() for name in (each.api_key_env, each.callback_key_env))
        self._keys.update({name: os.environ[name] for name in named if name and name in os.environ})

    def take_secrets_out_of_the_environment(self) -> None:
        """They are here now. What libraries read by themselves whenever they need it, Amazon's variables, stays."""
        for name in (*self._keys, *(f"WINDLASS_{name.upper()}" for name in SECRET_SETTINGS)):
            os.environ.pop(name, None)

    def sandbox_of(self, agent: str) -> SandboxMode:
        return self.agents[agent].sandbox or self.agent_sandbox

    def all_queues(self) -> tuple[str, ...]:
        return tuple(queue_name(provider.actor, name) for name, provider in self.providers.items())

    def consumed_queues(self, actors: Collection[str]) -> tuple[str, ...]:
        """The queues that a process with these actors serves: all of theirs, unless `WINDLASS_QUEUES` names some."""
        return tuple(queue for queue in self.queues or self.all_queues() if queue.partition(".")[0] in actors)

    def endpoint_of(self, provider: str) -> Endpoint | None:
        """The real one where its key is set, else the fake server's if there is one."""
        configured = self.providers[provider]
        key = self._keys.get(configured.api_key_env or "")
        if key and configured.base_url:
            return Endpoint(configured.base_url.rstrip("/"), key)
        if self.fake_providers_url is not None:
            return Endpoint(f"{self.fake_providers_url}/{configured.adapter or provider}", FAKE_KEY, is_fake=True)
        return None

    def callback_key_of(self, provider: str) -> str | None:
        return self._keys.get(self.providers[provider].callback_key_env or "") or None

    @property
    def report_seconds(self) -> float:
        """For how long what a dispatcher or a janitor has said of itself is believed."""
        return 3 * self.safety_poll_seconds

    @property
    def agent_grace_seconds(self) -> float:
        """From TERM to KILL: well within the time after which an attempt that does not stop condemns its worker."""
        return 0.4 * self.stop_grace_seconds

    @property
    def address(self) -> str:
        """Where others reach the api: browsers that show media, providers that call back."""
        return (self.public_url or f"http://{self.host}:{self.port}").rstrip("/")

    def trusted_networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        return tuple(ip_network(each, strict=False) for each in self.trusted_proxies)

    def secrets(self) -> set[str]:
        """The values that must appear nowhere: in no row, no log line and no answer."""
        found = {self.api_key, (self.api_key or "").rpartition("_")[2]}
        for url in (self.database_url, self.database_direct_url, self.amqp_url, self.otlp_endpoint):
            parts = urlsplit(url or "")
            # What equals its user's name (`guest:guest`) is no secret, and a word that log lines are full of.
            if parts.password != parts.username:
                found |= {parts.password, unquote(parts.password or "")}
        found |= {*self._keys.values()}
        found |= {os.environ.get(name) for name in ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")}
        for name in ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"):
            values = [pair.partition("=")[2].strip() for pair in os.environ.get(name, "").split(",")]
            found |= {*values, *map(unquote, values)}
        return {secret for secret in found if secret and len(secret) >= SHORTEST_SECRET}


def _merged(*layers: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Table by table and key by key, the later layer over the earlier."""
    names = dict.fromkeys(name for layer in layers for name in layer)
    return {name: {k: v for layer in layers for k, v in layer.get(name, {}).items()} for name in names}


def queue_name(actor: str, provider: str) -> str:
    return f"{actor}.{provider}"
