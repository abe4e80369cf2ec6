"""From a request's body to a workflow that can be stored, or to the problem that names what is wrong with it."""

from typing import Any

from windlass.services.api.access.auth import Caller
from windlass.services.api.http.errors import problem_of
from windlass.shared import tracing
from windlass.shared.settings import Settings
from windlass.shared.submission.known import Actors
from windlass.shared.submission.refusal import Refused
from windlass.shared.submission.workflows import Wanted, workflow_of


def accept(body: Any, caller: Caller, settings: Settings, actors: Actors, idempotency_key: str | None) -> Wanted:
    trace = tracing.traceparent()
    try:
        return workflow_of(body, caller, settings, actors, idempotency_key=idempotency_key, traceparent=trace)
    except Refused as refused:
        raise problem_of(refused) from refused
