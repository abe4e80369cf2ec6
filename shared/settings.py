"""Everything that can be set, read once from the environment and the TOML file; nobody else reads either."""

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict


class ProviderSettings(BaseModel):
    """One `[providers.NAME]` table: who does the work, and how much of it at once."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    actor: str
    limit: Annotated[int, Field(ge=0)] | None = None


DEFAULT_PROVIDERS: dict[str, dict[str, Any]] = {"probe": {"actor": "probe"}}


class Settings(BaseSettings):
    """`WINDLASS_*` variables over the file that `WINDLASS_CONFIG` names over the defaults below."""

    model_config = SettingsConfigDict(env_prefix="WINDLASS_", extra="forbid", frozen=True)

    config: Path | None = None
    data_dir: Path = Path(".windlass")
    database_url: str | None = None
    amqp_url: str | None = None
    api_key: str | None = Field(None, pattern=r"^wl_[0-9A-Za-z]{6,32}_[0-9A-Za-z]{24,64}$")

    host: str = "127.0.0.1"
    port: int = Field(8800, ge=0, le=65535)
    log_level: Literal["debug", "info", "warning", "error"] = "info"

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
    safety_poll_seconds: float = Field(15, gt=0)
    probe_faults: bool = False

    providers: dict[str, ProviderSettings] = Field(default_factory=dict)

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

    @field_validator("queues", mode="before")
    @classmethod
    def _split_queues(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(name.strip() for name in value.split(",") if name.strip())
        return value

    @model_validator(mode="before")
    @classmethod
    def _merge_the_file(cls, values: dict[str, Any]) -> dict[str, Any]:
        path = values.get("config")
        tables: dict[str, Any] = tomllib.loads(Path(path).read_text()) if path else {}
        layers = (DEFAULT_PROVIDERS, tables.get("providers", {}), values.get("providers", {}))
        names = dict.fromkeys(name for layer in layers for name in layer)
        providers = {name: {k: v for layer in layers for k, v in layer.get(name, {}).items()} for name in names}
        return {**tables, **values, "providers": providers}

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

    def all_queues(self) -> tuple[str, ...]:
        return tuple(queue_name(provider.actor, name) for name, provider in self.providers.items())

    def consumed_queues(self) -> tuple[str, ...]:
        """The queues that this actors process serves: all of them unless `WINDLASS_QUEUES` names some."""
        return self.queues or self.all_queues()


def queue_name(actor: str, provider: str) -> str:
    return f"{actor}.{provider}"
