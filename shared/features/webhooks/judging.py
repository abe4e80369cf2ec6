"""The state of an endpoint after its tries: a pure function."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from windlass.shared.webhook_states import EndpointState

FAILURES_IN_A_ROW = 5
LONGEST_FAILURE = timedelta(days=5)
REASONS = {
    EndpointState.FAILING: "it failed five times in a row",
    EndpointState.GONE: "it said 410: gone",
    EndpointState.DISABLED: "it failed for five days",
    EndpointState.ENABLED: None,
}


class Try(Protocol):
    """One request to an endpoint, and its answer."""

    @property
    def at(self) -> datetime: ...
    @property
    def delivered(self) -> bool: ...
    @property
    def gone(self) -> bool: ...


@dataclass(frozen=True)
class Standing:
    """The state of an endpoint, when it changed, and since when the endpoint has failed."""

    state: str
    changed_at: datetime
    failing_since: datetime | None = None


def judge(standing: Standing, tries: Iterable[Try]) -> Standing:
    """Applies tries in the order in which they were made. Five failures in a row make an endpoint failing, a failure
    five days later disables it, a 410 makes it gone, and a 2xx enables it again unless a user has disabled it. A try
    from before the last change is ignored, so tries that were judged before may be judged again.
    """
    failures: list[datetime] = []
    for each in sorted(tries, key=lambda one: one.at):
        if each.at <= standing.changed_at:
            continue
        failures = [] if each.delivered else [*failures, each.at][-FAILURES_IN_A_ROW:]
        changed = _next(standing, each, failures)
        if changed is not None:
            standing, failures = changed, []
    return standing


def _next(standing: Standing, each: Try, failures: list[datetime]) -> Standing | None:
    has_failed_for_long = standing.state == EndpointState.DISABLED and standing.failing_since is not None
    if standing.state == EndpointState.GONE:
        return None
    if each.delivered:
        heals = standing.state == EndpointState.FAILING or has_failed_for_long
        return Standing(EndpointState.ENABLED, each.at) if heals else None
    if each.gone:
        return Standing(EndpointState.GONE, each.at)
    if standing.state == EndpointState.ENABLED and len(failures) == FAILURES_IN_A_ROW:
        return Standing(EndpointState.FAILING, each.at, failures[0])
    if standing.state == EndpointState.FAILING:
        since = standing.failing_since or standing.changed_at
        return Standing(EndpointState.DISABLED, each.at, since) if each.at - since >= LONGEST_FAILURE else None
    return None
