"""Actors over REST: which there are, and what each of them takes."""

from typing import Any

from litestar import delete, get
from litestar.datastructures import State
from litestar.params import FromPath

from windlass.services.api.access.audit import audit
from windlass.services.api.access.auth import require_admin
from windlass.services.api.access.reasons import AskedReason
from windlass.services.api.actors.documents import summary, whole_document
from windlass.services.api.http.errors import Problem
from windlass.services.api.tasks.handlers import Asked
from windlass.shared.settings import Settings
from windlass.shared.store.operating import unused
from windlass.shared.suggestions import meant


@get("/actors")
async def list_actors(state: State) -> dict[str, Any]:
    """Every actor that a task can be submitted to, by name: those that come with Windlass, and those of your own. Left
    out are actors that no configuration names any more and that nobody has used for a day."""
    actors, shown = state.registry.actors, state.registry.shown
    names = [name for name in sorted(actors) if shown is None or shown.has_actor(name)]
    return {"items": [summary(actors[name], state.settings) for name in names]}


@get("/actors/{name:str}")
async def get_actor(request: Asked, state: State, name: FromPath[str]) -> dict[str, Any]:
    """What an actor takes, who may be asked for it, and which of its versions are at work."""
    known = state.registry.actors.get(name)
    if known is None:
        raise unknown_actor(name, state)
    return whole_document(known, state.settings, with_workers=request.user.sees_everything)


@delete("/actors/{name:str}", status_code=200, summary="Forget an actor")
async def forget_actor(request: Asked, state: State, name: FromPath[str], reason: AskedReason = None) -> dict[str, Any]:
    """Removes an actor that no configuration names any more, with its queues and with the providers that serve nothing
    else. Its tasks stay. One that is registered again is back."""
    require_admin(request.user)
    if "\0" in name:
        raise unknown_actor(name, state)
    settings: Settings = state.settings
    known = state.registry.actors.get(name)
    if known is not None and known.is_built_in:
        raise in_use(name, "it comes with Windlass")
    named = [provider for provider, table in settings.providers.items() if name in table.actors]
    if name in settings.actors or named:
        table = f"[actors.{name}]" if name in settings.actors else f"[providers.{named[0]}]"
        raise in_use(name, f"the configuration names it in {table}; remove the table first")
    await audit(request, "actor.forget", name, reason=reason)
    done = await unused.forget(
        state.pool, name, named_providers=list(settings.providers), heard_within_seconds=settings.lease_seconds
    )
    if not done.is_known:
        raise unknown_actor(name, state)
    if done.live_tasks:
        tasks = "1 task of it is" if done.live_tasks == 1 else f"{done.live_tasks} tasks of it are"
        raise in_use(name, f"{tasks} not finished; cancel them or wait")
    if done.live_workers:
        workers = "1 worker serves" if done.live_workers == 1 else f"{done.live_workers} workers serve"
        raise in_use(name, f"{workers} it; stop them first")
    if done.is_named:
        raise in_use(
            name,
            "the latest registration names it; take it out of the configuration, then run `windlass actors register` "
            "or restart `windlass up`",
        )
    await state.registry.look_anew(state.pool)
    return {"name": name, "queues": done.queues, "providers": done.providers}


def unknown_actor(name: str, state: State) -> Problem:
    return Problem(404, "unknown-actor", f"no actor is called {name}; {meant(name, state.registry.actors)}")


def in_use(name: str, why: str) -> Problem:
    return Problem(409, "actor-in-use", f"actor {name} cannot be forgotten: {why}")


HANDLERS = [list_actors, get_actor, forget_actor]
