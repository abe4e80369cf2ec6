"""How long a task waits before its next attempt: a list of seconds or a curve, for each type of error."""

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Discriminator, Field, Tag, model_validator

from windlass.shared.forms import Form, at_most

LONGEST_SECONDS = 366 * 86400
AT_MOST = 100
"""So many retries a task has at most: further entries would never be read."""


class Curve(Form):
    """Delays that grow with the number n of the failure: `base`ⁿ, or `base`·n², at most `cap`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    curve: Annotated[Literal["exponential", "quadratic"], Field(description="`base`ⁿ, or `base`·n².")]
    base: Annotated[float, Field(gt=0, le=LONGEST_SECONDS, allow_inf_nan=False, description="In seconds.")] = 2
    cap: Annotated[float, Field(ge=0, le=LONGEST_SECONDS, description="No delay is longer, in seconds.")] = 300

    @model_validator(mode="after")
    def _grows(self) -> Self:
        if self.curve == "exponential" and self.base < 1:
            raise ValueError(
                f"the base of an exponential curve must be at least 1, or the delays shrink: {self.base:g}"
            )
        return self

    def delay(self, failures: int) -> float:
        n = failures + 1
        try:
            grown = self.base**n if self.curve == "exponential" else self.base * n**2
        except OverflowError:
            return self.cap
        return min(grown, self.cap)


Listed = Annotated[
    tuple[Annotated[float, Field(ge=0, le=LONGEST_SECONDS, allow_inf_nan=False, strict=True)], ...],
    Field(min_length=1, max_length=AT_MOST, strict=False),
    at_most(AT_MOST),
]
"""Seconds, one after the other; the last one is repeated."""

LIST, CURVE, MAP = TAGS = "(list)", "(curve)", "(map)"
"""Tags of what a delay can be, in parentheses so that a reader of an error's place can leave them out."""


def _which(value: Any) -> str | None:
    if isinstance(value, list | tuple):
        return LIST
    return CURVE if isinstance(value, dict | Curve) else None


Delays = Annotated[
    Annotated[Listed, Tag(LIST)] | Annotated[Curve, Tag(CURVE)],
    Discriminator(
        _which,
        custom_error_type="delays",
        custom_error_message='must be a list of seconds, as [5, 10, 30], or a curve, as {curve = "exponential", '
        "base = 2, cap = 300}",
    ),
]

BUILT_IN_CURVE = Curve(curve="quadratic", base=5, cap=300)
"""For errors that nobody has thought of."""

OTHER = "other"


def delay_at(delays: tuple[float, ...] | Curve, failures: int) -> float:
    """Before the next attempt of a task that has failed so often before this time."""
    if isinstance(delays, Curve):
        return delays.delay(failures)
    return delays[min(failures, len(delays) - 1)]


class TaskSchedules(Form):
    """Delays by type of error, as a task can have them. How long its provider pauses after a 429 is not for a task to
    say, nor is what befalls it when its worker is lost."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    service_unavailable: Delays | None = Field(
        None, alias="ServiceUnavailable", description="After a 500, 502, 503 or 504."
    )
    network_timeout: Delays | None = Field(
        None, alias="NetworkTimeout", description="After a timeout of a connection, or one that was lost."
    )
    timed_out: Delays | None = Field(None, alias="TimedOut", description="After the task's own timeout.")
    subprocess_failed: Delays | None = Field(
        None, alias="SubprocessFailed", description="After an exit code other than 0, or a signal."
    )
    other: Delays | None = Field(None, description="After any other exception that may be tried again.")

    def delays_of(self, error_type: str) -> tuple[float, ...] | Curve | None:
        """None where this table says nothing about such errors."""
        found: tuple[float, ...] | Curve | None = getattr(self, FIELDS[error_type], None)
        return found


def _list_or_map(value: Any) -> str | None:
    if isinstance(value, list | tuple):
        return LIST
    return MAP if isinstance(value, dict | TaskSchedules) else None


TaskDelays = Annotated[
    Annotated[Listed, Tag(LIST)] | Annotated[TaskSchedules, Tag(MAP)],
    Discriminator(
        _list_or_map,
        custom_error_type="delays",
        custom_error_message="must be a list of seconds, as [5, 10, 30], or an object of delays by type of error",
    ),
]


def stored_delays(said: tuple[float, ...] | TaskSchedules) -> dict[str, Any]:
    """A task's delays in the one shape that is kept: by type of error. A list is for all of them."""
    if isinstance(said, TaskSchedules):
        return said.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {str(field.alias or name): said for name, field in TaskSchedules.model_fields.items()}


def schedules_of_task(said: dict[str, Any]) -> TaskSchedules:
    """As it was stored; what another version has added meanwhile is left out."""
    return TaskSchedules.model_validate({name: delays for name, delays in said.items() if name in FIELDS})


class Schedules(TaskSchedules):
    """Delays by type of error, in the table of an actor, an agent or a provider; what is left out, the next wider table
    says: an agent's, then its actor's, its provider's, `[retries]`, and at last what is built in."""

    rate_limited: Delays | None = Field(
        None, alias="RateLimited", description="After a 429 that names no time; the whole provider pauses so long."
    )


class RetrySettings(Schedules):
    """The `[retries]` table: for every task, unless a table of its actor, agent or provider says otherwise."""

    worker_lost: Delays | None = Field(
        None, alias="WorkerLost", description="After its worker died, froze or was cut off; for all tasks alike."
    )
    jitter: float = Field(0.1, ge=0, le=1, description="Every delay is longer by up to this part of it, at random.")
    rate_limits_cost_from: int = Field(
        20, ge=1, description="From this 429 in a row of one task on, each one costs a retry."
    )
    interrupts_cost_from: int = Field(
        10, ge=1, description="From this interrupt of one task on, each one costs a retry."
    )
    timeout_factor: float = Field(
        1.5, ge=1, le=10, description="After `TimedOut` the next attempt has so many times as much time."
    )

    def seconds_after_a_lost_worker(self, built_in: tuple[float, ...]) -> list[float]:
        """Written out, for who finds tasks without a worker: Postgres knows lists, no curves."""
        delays = built_in if self.worker_lost is None else self.worker_lost
        if isinstance(delays, Curve):
            return [delays.delay(failures) for failures in range(AT_MOST)]
        return list(delays)


FIELDS = {
    str(field.alias or name): name
    for name, field in RetrySettings.model_fields.items()
    if field.alias is not None or name == OTHER
}
"""By the types' names, as the tables have them."""

BUILT_IN = RetrySettings()
