"""The client of Windlass: submit work, come back for it, and read its whole story.

from windlass import Client

with Client() as windlass:
    print(windlass.run("probe", {"seconds": 1, "result": "hello"}).result)
"""

# The server's own packages live below this name, too (`docs/decisions/0035-one-name-when-installed.md`), and must not
# wait for the client, nor a keeper that runs without site-packages fail for want of it: so it is loaded when asked for.
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windlass.client import *  # noqa: F403 - everything that the client's package names in `__all__`


def __getattr__(name: str) -> Any:
    client = import_module("windlass.client")
    if name == "__all__" or name in client.__all__:
        return getattr(client, name)
    raise AttributeError(f"module 'windlass' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *import_module("windlass.client").__all__])
