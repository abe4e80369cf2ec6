"""Everything that can be set, read once from the environment and the TOML file; nobody else reads either."""

import json
import os
import re
import sys
import tomllib
from collections.abc import Collection, Iterator
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import unquote, urlsplit

from pydantic import Field, PrivateAttr, ValidationError, field_validator, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource

from windlass.actors.names import fault_of
from windlass.shared.retry_delays import RetrySettings, Schedules
from windlass.shared.schedules.definition import Definition as ScheduleDefinition
from windlass.shared.settings.variables import Variables
from windlass.shared.toml_tables import (
    DEFAULT_ACTORS,
    ActorSettings,
    AgentSettings,
    Endpoint,
    LaneSettings,
    NetworkSettings,
    ProviderSettings,
    SandboxMode,
    TaskDefaults,
    WorkerSettings,
)

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
    "hash": {"actor": "embed", "limit": 2},
    "probe": {"actor": "probe"},
    "http": {"actor": "webhook"},
}

DEMO_AGENT = Path(__file__).parent.parent / "demo_agent.py"
DEFAULT_AGENTS: dict[str, dict[str, Any]] = {"demo": {"command": (sys.executable, "-I", str(DEMO_AGENT))}}

OWN = "own"
"""Among `queues`: those of all actors that do not come with Windlass. Every queue has a dot in its name."""

SECRET_SETTINGS = ("database_url", "database_direct_url", "amqp_url", "api_key")

MAY_HAVE_NO_KEY = {"openai"}
"""Adapters for servers that ask for a key or for none."""

FAKE_KEY = "fake-provider-key"
"""What the bundled fake provider server is spoken to with."""


class Settings(Variables):
    """`WINDLASS_*` variables over the file that `WINDLASS_CONFIG` names over the defaults below."""

    providers: dict[str, ProviderSettings] = Field(default_factory=dict)
    agents: dict[str, AgentSettings] = Field(default_factory=dict)
    actors: Annotated[dict[str, ActorSettings], NoDecode] = Field(default_factory=dict)
    schedules: dict[str, ScheduleDefinition] = Field(default_factory=dict)
    retries: RetrySettings = RetrySettings()
    lanes: LaneSettings = LaneSettings()
    defaults: TaskDefaults = TaskDefaults()
    network: NetworkSettings = NetworkSettings()
    worker: WorkerSettings = WorkerSettings()

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

    @field_validator("queues", "cors_origins", "trusted_proxies", "actor_modules", mode="before")
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
        values = _with_modules_apart(values)
        path = values.get("config")
        tables = read_tables(Path(path)) if path else {}
        merged = {
            name: _merged(built_in, tables.get(name, {}), values.get(name, {}))
            for name, built_in in (
                ("agents", DEFAULT_AGENTS),
                ("actors", DEFAULT_ACTORS),
            )
        }
        merged["providers"] = _merged(
            *_with_the_last_word(DEFAULT_PROVIDERS, tables.get("providers", {}), values.get("providers", {}))
        )
        for name in ("retries", "lanes", "defaults", "network", "worker"):
            if said := [layer[name] for layer in (tables, values) if name in layer]:
                merged[name] = _joined(said)
        return {**tables, **values, **merged}

    @model_validator(mode="after")
    def _knows_its_actors(self) -> Self:
        if problems := list(problems_of_actors(self)):
            raise ValidationError.from_exception_data(
                type(self).__name__,
                [
                    InitErrorDetails(
                        type=PydanticCustomError("actors", "{said}", {"said": said}), loc=place, input=None
                    )
                    for place, said in problems
                ],
            )
        return self

    @model_validator(mode="after")
    def _keeps_the_promises(self) -> Self:
        needed = 3 * self.heartbeat_seconds + 2 * self.stop_grace_seconds + self.lease_margin_seconds
        if self.lease_seconds < needed:
            raise ValueError(
                f"lease_seconds ({self.lease_seconds:g}) must be at least 3 heartbeat_seconds + 2 stop_grace_seconds "
                f"+ lease_margin_seconds = {needed:g}, or a worker could lose a lease that it still works under"
            )
        if self.breaker_least_results > self.breaker_window:
            raise ValueError(
                f"breaker_least_results ({self.breaker_least_results}) must not be more than breaker_window "
                f"({self.breaker_window}), or no breaker would ever open"
            )
        for queue in self.queues:
            if queue.endswith((".DQ", ".XQ")):
                raise ValueError(
                    f"queues: {queue} is Dramatiq's; what waits, and what is dead, are rows in Postgres here"
                )
        if unknown := {queue for queue in self.queues if not self._may_be_served(queue)}:
            raise ValueError(f"queues: no provider serves {', '.join(sorted(unknown))}")
        return self

    def _may_be_served(self, queue: str) -> bool:
        """Who serves an actor of somebody's own may be said in its code: the worker finds out."""
        actor = queue.partition(".")[0]
        is_own = actor not in DEFAULT_ACTORS and bool(actor in self.actors or self.actor_modules)
        return queue == OWN or is_own or queue in self.all_queues()

    def model_post_init(self, _context: object) -> None:
        named = (name for each in self.providers.values() for name in (each.api_key_env, each.callback_key_env))
        self._keys.update({name: os.environ[name] for name in named if name and name in os.environ})

    def take_secrets_out_of_the_environment(self) -> None:
        """They are here now. What libraries read by themselves whenever they need it, Amazon's variables, stays."""
        for name in (*self._keys, *(f"WINDLASS_{name.upper()}" for name in SECRET_SETTINGS)):
            os.environ.pop(name, None)

    def sandbox_of(self, agent: str) -> SandboxMode:
        return self.agents[agent].sandbox or self.agent_sandbox

    def schedules_for(self, actor: str, provider: str, agent: str | None) -> tuple[Schedules, ...]:
        """The tables that say how long a task waits after a failure, the narrowest first."""
        of_agent = (self.agents[agent].retries,) if agent in self.agents else ()
        of_actor = (self.actors[actor].retries,) if actor in self.actors else ()
        of_provider = (self.providers[provider].retries,) if provider in self.providers else ()
        return (*of_agent, *of_actor, *of_provider, self.retries)

    def all_queues(self) -> tuple[str, ...]:
        return tuple(queue_name(actor, name) for name, provider in self.providers.items() for actor in provider.actors)

    def named_queues(self) -> tuple[str, ...]:
        """All, unless `WINDLASS_QUEUES` names some; `own` stands for the known ones of actors of somebody's own."""
        if not self.queues:
            return self.all_queues()
        own = [queue for queue in self.all_queues() if is_own(queue)] if OWN in self.queues else []
        return tuple(dict.fromkeys([*(queue for queue in self.queues if queue != OWN), *own]))

    def consumed_queues(self, actors: Collection[str]) -> tuple[str, ...]:
        """The queues that a process with these actors serves: all of theirs, unless `WINDLASS_QUEUES` names some."""
        return tuple(queue for queue in self.named_queues() if queue.partition(".")[0] in actors)

    def endpoint_of(self, provider: str) -> Endpoint | None:
        """The real one where its key is set, else the fake server's if there is one that plays it."""
        configured = self.providers[provider]
        key = self._keys.get(configured.api_key_env or "")
        if configured.base_url and (key or self._needs_no_key(provider)):
            return Endpoint(configured.base_url.rstrip("/"), key or "")
        if self.fake_providers_url is not None and self.is_played(provider):
            return Endpoint(f"{self.fake_providers_url}/{configured.adapter or provider}", FAKE_KEY, is_fake=True)
        return None

    def _needs_no_key(self, provider: str) -> bool:
        """A model on one's own machine asks for none; where a variable is named, the key is awaited in it."""
        configured = self.providers[provider]
        return (configured.adapter or provider) in MAY_HAVE_NO_KEY and configured.api_key_env is None

    def is_played(self, provider: str) -> bool:
        """Whether the fake server may stand in for it: it speaks as one that is built in, and nobody has given it an
        address or a key of its own, at which its tasks would be awaited in vain."""
        configured = self.providers[provider]
        built_in = DEFAULT_PROVIDERS.get(configured.adapter or provider, {})
        own = (configured.base_url, configured.api_key_env)
        real = (built_in.get("base_url"), built_in.get("api_key_env"))
        return None not in real and all(said in {None, theirs} for said, theirs in zip(own, real, strict=True))

    def lack_of(self, provider: str) -> str:
        """What has to be done before the provider can be spoken to, told to the operator."""
        configured = self.providers[provider]
        key, table = configured.api_key_env, f"[providers.{provider}]"
        has_key = bool(key and self._keys.get(key)) or self._needs_no_key(provider)
        wanted = "" if has_key else f"set {key}" if key else f"name api_key_env in {table}"
        where = "" if configured.base_url else f"give base_url in {table}"
        return " and ".join(filter(None, (wanted, where)))

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


def read_tables(path: Path) -> dict[str, Any]:
    """The file, or a sentence about what is wrong with it as a whole."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"WINDLASS_CONFIG names {path}, and there is no such file") from None
    except OSError as error:
        raise ValueError(f"WINDLASS_CONFIG names {path}, which cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is no TOML: it is not written in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is no TOML: {error}") from None


def _merged(*layers: Any) -> Any:
    """Table by table and key by key, the later layer over the earlier. What is no table is left for the check."""
    for layer in layers:
        if not isinstance(layer, dict):
            return layer
    names = dict.fromkeys(name for layer in layers for name in layer)
    return {name: _joined([layer[name] for layer in layers if name in layer]) for name in names}


def _with_the_last_word(*layers: Any) -> list[Any]:
    """`actor` and `actors` say the same, so a later layer's replaces either."""
    said_later: dict[str, set[str]] = {}
    kept: list[Any] = []
    for layer in reversed(layers):
        tables = layer.items() if isinstance(layer, dict) else ()
        kept.append({name: _without(table, said_later.get(name, set())) for name, table in tables} if tables else layer)
        for name, table in tables:
            if isinstance(table, dict) and table.keys() & {"actor", "actors"}:
                said_later[name] = {"actor", "actors"}
    return kept[::-1]


def _without(table: Any, keys: set[str]) -> Any:
    return {key: value for key, value in table.items() if key not in keys} if isinstance(table, dict) else table


def _joined(tables: list[Any]) -> Any:
    wrong = [table for table in tables if not isinstance(table, dict)]
    return wrong[0] if wrong else {key: value for table in tables for key, value in table.items()}


def _with_modules_apart(values: dict[str, Any]) -> dict[str, Any]:
    """`WINDLASS_ACTORS` names modules and files with actors; or it is the tables as JSON, as with the others."""
    said = values.get("actors")
    if not isinstance(said, str):
        return values
    if not said.lstrip().startswith("{"):
        return {**{key: value for key, value in values.items() if key != "actors"}, "actor_modules": said}
    try:
        return {**values, "actors": json.loads(said)}
    except ValueError:
        raise ValueError('WINDLASS_ACTORS: must be modules, or JSON, as {"name": {"key": "value"}}') from None


def problems_of_actors(settings: Settings) -> Iterator[tuple[tuple[str, ...], str]]:
    """What is wrong with the tables of actors and with the names in those of providers, each with its place."""
    own = {name: table for name, table in settings.actors.items() if name not in DEFAULT_ACTORS}
    there_are = f"there are {', '.join([*DEFAULT_ACTORS, *own])}"
    for name, table in settings.actors.items():
        place = ("actors", name)
        if name in DEFAULT_ACTORS and (table.function or table.module != DEFAULT_ACTORS[name]["module"]):
            yield place, f"{name} comes with Windlass; give an actor of your own another name"
        elif table.module and table.function:
            yield place, "`module` and `function` are both there; give one of them"
        elif fault := fault_of(name):
            yield place, f"an actor's name {fault}"
        elif not (table.module or table.function or settings.actor_modules):
            known = ", ".join(DEFAULT_ACTORS)
            yield place, f"no actor is called {name}; there are {known}; if it is your own, give its `module`"
    if settings.actor_modules:
        return  # who knows what is in there
    for name, provider in settings.providers.items():
        for actor in provider.actors:
            if actor not in settings.actors:
                key = "actor" if provider.actor is not None else "actors"
                yield ("providers", name, key), f"no actor is called {actor}; {there_are}"


def is_own(queue: str) -> bool:
    """Whether it is one of an actor that does not come with Windlass."""
    return queue.partition(".")[0] not in DEFAULT_ACTORS


def queue_name(actor: str, provider: str) -> str:
    return f"{actor}.{provider}"


def provider_of(queue: str) -> str:
    return queue.partition(".")[2]
