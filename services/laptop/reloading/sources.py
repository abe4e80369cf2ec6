"""Where the actors of the user's own are: the Python files that may change what a worker has loaded."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from windlass.shared.actors.importing import ENTRY_POINTS
from windlass.shared.settings import Settings
from windlass.shared.toml_tables import DEFAULT_ACTORS

Seen = dict[str, tuple[int, int]]
"""When each file was written last, and its size."""

NOBODYS_OWN = {"__pycache__", "node_modules", "site-packages"}
INSTALLED = {"site-packages", "dist-packages"}


def named(settings: Settings) -> list[str]:
    """The files, modules and entry points that the settings load actors from."""
    tables = [table for name, table in settings.actors.items() if name not in DEFAULT_ACTORS]
    from_tables = [(table.function or "").partition(":")[0] or table.module for table in tables]
    return sorted({*settings.actor_modules, *(each for each in from_tables if each)})


def places_of(names: Iterable[str]) -> list[Path]:
    """Directories, and single files of what is installed; nothing is imported to find them."""
    found = {place for name in names if (place := _place_of(name)) is not None}
    return sorted(place for place in found if found.isdisjoint(place.parents))


def look(places: Iterable[Path]) -> Seen:
    """All Python files there. Cheap enough to be done twice a second: nothing is opened."""
    return {path: seen for place in places for path, seen in _below(str(place))}


def changed(before: Seen, after: Seen) -> list[str]:
    """Those that are new, written anew or gone."""
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def _place_of(name: str) -> Path | None:
    if name.endswith(".py") or "/" in name:
        return Path(name).expanduser().absolute().parent
    module = next((entry.module for entry in entry_points(group=ENTRY_POINTS, name=name)), name)
    try:
        # Of the package that it is in: to ask for a module inside would import what is around it.
        spec = find_spec(module.partition(".")[0])
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None:
        locations = list(spec.submodule_search_locations or ()) if spec else []
        return Path(locations[0]).absolute() if locations else None
    file = Path(spec.origin).absolute()
    is_alone = spec.submodule_search_locations is None and not INSTALLED.isdisjoint(file.parts)
    return file if is_alone else file.parent


def _below(place: str) -> Iterator[tuple[str, tuple[int, int]]]:
    with suppress(OSError):  # gone, or closed to us
        if place.endswith(".py"):
            status = os.stat(place)  # noqa: PTH116 - text, twice a second
            yield place, (status.st_mtime_ns, status.st_size)
            return
        with os.scandir(place) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if not _is_nobodys_own(entry):
                        yield from _below(entry.path)
                elif entry.name.endswith(".py"):
                    with suppress(OSError):
                        status = entry.stat()
                        yield entry.path, (status.st_mtime_ns, status.st_size)


def _is_nobodys_own(directory: os.DirEntry[str]) -> bool:
    """What is hidden, made or installed, virtual environments above all: large, and not what anybody writes."""
    hidden = directory.name.startswith(".") or directory.name in NOBODYS_OWN
    return hidden or os.path.exists(f"{directory.path}/pyvenv.cfg")  # noqa: PTH110 - text, twice a second
