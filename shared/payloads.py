"""What each actor takes: the schema that the API checks at submit time and the actor reads when it runs."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from shared.errors import ERROR_TYPES


class Payload(BaseModel):
    """Fields that nobody knows are refused: they are mistakes of the client's that it wants to hear of."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ProbePayload(Payload):
    """A synthetic task for smoke tests, drills and benchmarks."""

    seconds: Annotated[float, Field(ge=0, le=86400, description="How long it works.")] = 0
    steps: Annotated[int, Field(ge=0, le=10000, description="How often it reports progress meanwhile.")] = 0
    outcome: Annotated[
        Literal["ok", "transient", "permanent", "crash", "hang"],
        Field(description="What it does at the end. `crash` and `hang` need an admin and WINDLASS_PROBE_FAULTS=1."),
    ] = "ok"
    error_type: Annotated[str, Field(description="The error that it fails with.")] = "ServiceUnavailable"
    retry_after: Annotated[float, Field(ge=0)] | None = None
    fail_times: Annotated[int, Field(ge=0, description="Fail the first n attempts, then succeed.")] | None = None
    result: Annotated[Any, Field(description="Comes back as `echo`.")] = None

    @field_validator("error_type")
    @classmethod
    def _is_known(cls, name: str) -> str:
        if name not in ERROR_TYPES:
            raise ValueError(f"not an error type; one of {', '.join(sorted(ERROR_TYPES))}")
        return name


PAYLOADS: dict[str, type[Payload]] = {"probe": ProbePayload}

DEFAULT_PROVIDER: dict[str, str] = {"probe": "probe"}

TIMEOUT_SECONDS: dict[str, float] = {"probe": 300}
