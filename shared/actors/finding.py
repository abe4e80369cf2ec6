"""One actor, by its name and where the settings say that it is."""

from typing import Any

from windlass.actors import Actor
from windlass.shared.actors.importing import NotLoaded, actors_in, object_at
from windlass.shared.actors.taking_over import taken_over
from windlass.shared.suggestions import did_you_mean


def find(name: str, *, module: str | None, function: str | None) -> Actor[..., Any]:
    """Raises NotLoaded, or Misdeclared; a function goes before a module."""
    if function:
        return taken_over(name, object_at(function), function)
    found = actors_in(str(module))
    if name not in found:
        there = f"; {did_you_mean(name, found)}" if found else ""
        raise NotLoaded(f"{module} declares no actor that is called {name}{there}")
    return found[name]
