"""Actors over REST: which there are, and what each of them takes."""

from typing import Any

from litestar import get
from litestar.datastructures import State
from litestar.params import FromPath

from windlass.services.api.actors.documents import summary, whole_document
from windlass.services.api.http.errors import Problem
from windlass.services.api.tasks.handlers import Asked
from windlass.shared.wording import meant


@get("/actors")
async def list_actors(state: State) -> dict[str, Any]:
    """Every actor that a task can be submitted to, by name: those that come with Windlass, and those of your own."""
    actors = state.registry.actors
    return {"items": [summary(known, state.settings) for _, known in sorted(actors.items())]}


@get("/actors/{name:str}")
async def get_actor(request: Asked, state: State, name: FromPath[str]) -> dict[str, Any]:
    """What an actor takes, who may be asked for it, and which of its versions are at work."""
    known = state.registry.actors.get(name)
    if known is None:
        raise Problem(404, "unknown-actor", f"no actor is called {name}; {meant(name, state.registry.actors)}")
    return whole_document(known, state.settings, with_workers=request.user.sees_everything)


HANDLERS = [list_actors, get_actor]
