"""Memory over REST: a question, and the events that are nearest to it."""

from datetime import datetime
from typing import Annotated, Any

from litestar import get, post
from litestar.datastructures import State
from litestar.params import FromQuery, QueryParameter
from pydantic import AfterValidator, ConfigDict, Field, ValidationError

from windlass.services.api.access.auth import Caller
from windlass.services.api.http.bodies import read_json
from windlass.services.api.http.errors import invalid_fields
from windlass.services.api.memory.events import event_document
from windlass.services.api.tasks.handlers import Asked
from windlass.services.api.tasks.listing import in_utc
from windlass.services.api.workflows.handlers import refuse_nul
from windlass.shared.filters import Label, TextualTime
from windlass.shared.forms import Form
from windlass.shared.metrics.memory import SEARCHES
from windlass.shared.scrubbing import withhold_label
from windlass.shared.store.memory import searching
from windlass.shared.store.memory.questions import LONGEST_QUESTION
from windlass.shared.store.memory.searching import Scope

MOST = 50


class Question(Form):
    """What is looked for, and where."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    q: Annotated[
        Annotated[str, Field(min_length=1, max_length=LONGEST_QUESTION), AfterValidator(withhold_label)],
        Field(description="A question, or words."),
    ]
    limit: Annotated[int, Field(ge=1, le=MOST, description="How many events at most.")] = 10
    project_id: Annotated[Label | None, Field(description="Only of this project.")] = None
    subagent_type: Annotated[Label | None, Field(description="Only of this agent.")] = None
    created_after: Annotated[TextualTime | None, Field(description="Only younger ones.")] = None


@get("/memory/search")
async def search_memory(  # noqa: PLR0917 - Litestar passes them by name
    request: Asked,
    state: State,
    q: Annotated[str, QueryParameter(min_length=1, max_length=LONGEST_QUESTION, description="A question, or words.")],
    limit: Annotated[int, QueryParameter(ge=1, le=MOST, description="How many events at most.")] = 10,
    project_id: FromQuery[str | None] = None,
    subagent_type: FromQuery[str | None] = None,
    created_after: FromQuery[datetime | None] = None,
) -> dict[str, Any]:
    """The events that are nearest to a question, by their words and by their vectors: only what the caller may see."""
    refuse_nul(q, project_id, subagent_type)
    scope = Scope(request.user.own, project_id, subagent_type, in_utc(created_after))  # type: ignore[arg-type]
    return await answer(state, request.user, withhold_label(q), scope, limit)


@post("/memory/search", status_code=200)
async def search_memory_by_body(request: Asked, state: State) -> dict[str, Any]:
    """The same for what is too long for an address, or should not stand in one."""
    try:
        asked = Question.model_validate(await read_json(request))
    except ValidationError as error:
        raise invalid_fields(error, "invalid-request", Question) from error
    scope = Scope(request.user.own, asked.project_id, asked.subagent_type, asked.created_after)
    return await answer(state, request.user, asked.q, scope, asked.limit)


async def answer(state: State, caller: Caller, question: str, scope: Scope, limit: int) -> dict[str, Any]:
    await state.catch_up_on_memory.before_read()
    found = await searching.search(state.pool, question, scope, limit=limit, user_id=caller.user_id)
    SEARCHES.labels("text" if found.degraded else "fused").inc()
    model = found.model
    return {
        "items": [
            {"event": event_document(hit), "score": round(hit.score, 6), "matched": hit.matched} for hit in found.hits
        ],
        "model": None if model is None else {"model_id": model.model_id, "name": model.name},
        "coverage": found.coverage,
        "exact": found.exact,
        "degraded": found.degraded,
    }


HANDLERS = [search_memory, search_memory_by_body]
