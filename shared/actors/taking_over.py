"""A function that nobody has decorated, and a `dramatiq.actor` with what it brings."""

import inspect
import sys
from typing import Any

from windlass.actors import Actor
from windlass.shared.actors.importing import NotLoaded

LONGEST_SECONDS = 7 * 86400.0
MOST_RETRIES = 100

NOT_TAKEN_OVER = {
    "retry_when": "which errors are final is said by `throws`, and the delays by [retries]",
    "on_success": "nobody calls another actor at the end; let who submits it wait, or use `depends_on`",
    "on_failure": "nobody calls another actor at the end; let who submits it wait, or use `depends_on`",
    "pipe_target": "pipelines are not built yet; use `depends_on`",
}
"""Options of a `dramatiq.actor` that would silently mean nothing here."""


def taken_over(name: str, found: Any, said: str) -> Actor[..., Any]:
    """`found` as an actor of this name; `said` is how the settings call it."""
    if isinstance(found, Actor):
        raise NotLoaded(f"{said} is declared by @actor already; give its module as `module`")
    if _is_dramatiqs(found):
        return _from_dramatiq(name, found, said)
    if not inspect.isroutine(found):
        raise NotLoaded(f"{said} is no function")
    return Actor(found, name=name)


def _is_dramatiqs(found: Any) -> bool:
    """Dramatiq is there if it is one of its actors."""
    dramatiq = sys.modules.get("dramatiq")
    return dramatiq is not None and isinstance(found, dramatiq.Actor)


def _from_dramatiq(name: str, found: Any, said: str) -> Actor[..., Any]:
    options: dict[str, Any] = found.options
    for option, instead in NOT_TAKEN_OVER.items():
        if options.get(option):
            raise NotLoaded(f"{said} is a dramatiq.actor with {option}, which has no meaning here: {instead}")
    asynchronous = inspect.unwrap(found.fn)
    milliseconds, retries = options.get("time_limit"), options.get("max_retries")
    return Actor(
        asynchronous if inspect.iscoroutinefunction(asynchronous) else found.fn,
        name=name,
        throws=options.get("throws") or (),
        timeout_seconds=None if milliseconds is None else min(milliseconds / 1000, LONGEST_SECONDS),
        max_retries=None if retries is None else min(retries, MOST_RETRIES),
    )
