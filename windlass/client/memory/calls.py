"""Every call about memory and figures: its path, what it takes and what it answers."""

from collections.abc import Sequence
from typing import Final

from windlass.client.call import Call
from windlass.client.calls import API, named, without_none
from windlass.client.memory.documents import (
    AgentEvent,
    EmbeddingJob,
    EmbeddingModel,
    Figures,
    Found,
    Grouping,
    JobState,
)
from windlass.client.memory.options import Day, EventFilter, EventId, JobId, ModelId, Scope
from windlass.client.task import Listing

EVENTS: Final = f"{API}/agent-events"
MODELS: Final = f"{API}/embedding-models"
JOBS: Final = f"{API}/embedding-jobs"
STATS: Final = f"{API}/stats"


def search(question: str, limit: int, scope: Scope) -> Call[Found]:
    """By a body: what somebody asks does not stand in the logs of what lies between. Harmless to repeat."""
    return Call("POST", f"{API}/memory/search", Found, body={"q": question, "limit": limit, **without_none(scope)})


def events(filters: EventFilter, page_size: int | None = None) -> Call[Listing[AgentEvent]]:
    return Call("GET", EVENTS, Listing[AgentEvent], params={**filters, "limit": page_size})


def event(event_id: EventId) -> Call[AgentEvent]:
    return Call("GET", f"{EVENTS}/{named(str(event_id))}", AgentEvent)


def forget(event_id: EventId) -> Call[bytes]:
    """Not repeated: a second one would be told that there is none."""
    return Call("DELETE", f"{EVENTS}/{named(str(event_id))}", bytes, is_raw=True, repeatable=False)


def models() -> Call[Listing[EmbeddingModel]]:
    return Call("GET", MODELS, Listing[EmbeddingModel])


def add_model(name: str, provider: str, dimensions: int, *, activate_when_filled: bool) -> Call[EmbeddingModel]:
    """Not repeated: a second one would be told that it is there already."""
    body = {"name": name, "provider": provider, "dimensions": dimensions, "activate_when_filled": activate_when_filled}
    return Call("POST", MODELS, EmbeddingModel, body=body, repeatable=False)


def activate_model(model_id: ModelId) -> Call[EmbeddingModel]:
    return Call("POST", f"{MODELS}/{named(str(model_id))}/activate", EmbeddingModel)


def delete_model(model_id: ModelId) -> Call[bytes]:
    return Call("DELETE", f"{MODELS}/{named(str(model_id))}", bytes, is_raw=True, repeatable=False)


def jobs(state: JobState | None = None, page_size: int | None = None) -> Call[Listing[EmbeddingJob]]:
    return Call("GET", JOBS, Listing[EmbeddingJob], params={"state": state, "limit": page_size})


def retry_job(job_id: JobId) -> Call[EmbeddingJob]:
    """Not repeated: it may have failed again meanwhile."""
    return Call("POST", f"{JOBS}/{named(str(job_id))}/retry", EmbeddingJob, repeatable=False)


def stats(
    first: Day | None, last: Day | None, days: int | None, group_by: Sequence[Grouping]
) -> Call[Listing[Figures]]:
    params = {"from": first, "to": last, "days": days, "group_by": ",".join(group_by)}
    return Call("GET", STATS, Listing[Figures], params=params)


def stats_csv(first: Day | None, last: Day | None, days: int | None, group_by: Sequence[Grouping]) -> Call[bytes]:
    """The same as a table, for a spreadsheet."""
    params = stats(first, last, days, group_by).params
    return Call("GET", STATS, bytes, params=params, headers={"Accept": "text/csv"}, is_raw=True)
