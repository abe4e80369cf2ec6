"""Windlass: submit work, come back for it, read its whole story, and declare work of your own.

from windlass import Client, Context, actor

with Client() as windlass:
    print(windlass.run("probe", {"seconds": 1, "result": "hello"}).result)
"""

# The server's own packages live below this name, too (`docs/decisions/0035-one-name-when-installed.md`), and must not
# wait for the client, nor a keeper that runs without site-packages fail for want of it: so it is loaded when asked for.
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windlass.actors.public import *  # noqa: F403 - everything that they name in `__all__`
    from windlass.client import *  # noqa: F403

HOMES = ("windlass.actors.public", "windlass.client")
"""Where its names live; the first needs less."""


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return _all()
    for home in map(import_module, HOMES):
        if name in home.__all__:
            return getattr(home, name)
    raise AttributeError(f"module 'windlass' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_all()])


def _all() -> list[str]:
    return [name for home in map(import_module, HOMES) for name in home.__all__]
