"""What a person who comes back wants to know: how things stand, and what happened meanwhile."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from litestar import get
from litestar.datastructures import State
from litestar.params import QueryParameter

from windlass.services.api.tasks.handlers import Asked
from windlass.services.api.workflows.approvals import waiting_for
from windlass.shared.states import TERMINAL
from windlass.shared.store.reading.overview import Ended, ended_since

DEFAULT = timedelta(days=1)

Since = Annotated[datetime | None, QueryParameter(description="Since when, ISO 8601; a day ago if left out.")]


@get("/overview")
async def get_overview(request: Asked, state: State, since: Since = None) -> dict[str, Any]:
    """How many tasks are in each state, and what has ended since: how, of what it died, and what it has cost. A user's
    key hears of its own tasks."""
    asked = datetime.now(UTC) - DEFAULT if since is None else since.replace(tzinfo=since.tzinfo or UTC)
    owner = request.user.own
    _, states = await state.queue_figures.of(owner)
    rows, counted_from = await ended_since(state.lists, asked, owner=owner)
    asked_of = await waiting_for(state.pool, request.user)
    return {"since": counted_from, "states": states, **ends_document(rows), "waiting_for_you": asked_of}


def ends_document(rows: list[Ended]) -> dict[str, Any]:
    return {
        "ended": {status.value: sum(row.tasks for row in rows if row.status == status) for status in sorted(TERMINAL)},
        "died": [{"error_type": row.error_type, "count": row.tasks} for row in rows if row.status == "dead"],
        "cost_usd": round(sum(row.cost_usd or 0 for row in rows), 12),
    }


HANDLERS = [get_overview]
