"""Code of somebody's own, found by the name of a module, a file or an entry point: one sentence if it cannot be had."""

import inspect
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from windlass.actors import Actor
from windlass.shared.scrubbing import scrub

ENTRY_POINTS = "windlass.actors"

OURS = Path(inspect.getfile(Actor)).resolve().parent


class NotLoaded(Exception):
    """Something that the settings name cannot be had; the message is the rest of a sentence that begins with where."""


def actors_in(named: str) -> dict[str, Actor[..., Any]]:
    """What a module, a file or an entry point declares, by name."""
    there = _loaded(named)
    declared = [there] if isinstance(there, Actor) else list(vars(there).values())
    found: dict[str, Actor[..., Any]] = {}
    for each in declared:
        if isinstance(each, Actor) and found.setdefault(each.name, each) is not each:
            raise NotLoaded(f"{named} declares two actors that are called {each.name}; give one another name")
    return found


def object_at(named: str) -> Any:
    """What `package.module:name` stands for."""
    module, _, path = named.partition(":")
    there: Any = _imported(module)
    for name in path.split("."):
        if not hasattr(there, name):
            raise NotLoaded(f"{module} has nothing that is called {path}")
        there = getattr(there, name)
    return there


def _loaded(named: str) -> Any:
    if named.endswith(".py") or "/" in named:
        return _file(Path(named).expanduser().absolute())
    for entry in entry_points(group=ENTRY_POINTS, name=named):
        return _guarded(f"the entry point {named} ({entry.value})", entry.load)
    return _imported(named)


def _file(path: Path) -> ModuleType:
    if not path.is_file():
        raise NotLoaded(f"there is no file {path}")
    if not path.stem.isidentifier():
        raise NotLoaded(f"{path.name} cannot be imported under that name; call it as {_identifier(path.stem)}.py")
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    module: ModuleType = _guarded(str(path), lambda: import_module(path.stem))
    if not module.__file__ or Path(module.__file__).resolve() != path.resolve():
        raise NotLoaded(f"{path} cannot be imported, for another module is called {path.stem}; rename the file")
    return module


def _imported(name: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise NotLoaded(f"{name!r} is no module's name, and a file's ends in .py")
    module: ModuleType = _guarded(f"module {name}", lambda: import_module(name))
    return module


def _guarded(what: str, load: Callable[[], Any]) -> Any:
    """Foreign code runs here: whatever it raises is told, with its line."""
    try:
        return load()
    except ModuleNotFoundError as error:
        missing = error.name or ""
        wanted = what.removeprefix("module ")
        if wanted == missing or wanted.startswith(f"{missing}."):
            raise NotLoaded(f"there is no module {wanted} among what is installed here") from None
        raise NotLoaded(f"{what} needs {missing}, which is not installed here{_line_of(error)}") from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - told, and its queue is not served
        message = error.msg if isinstance(error, SyntaxError) else error
        said = scrub(f"{type(error).__name__}: {message}".splitlines()[0])
        raise NotLoaded(f"{what} cannot be imported: {said}{_line_of(error)}") from None


def _line_of(error: BaseException) -> str:
    """The last line of the foreign code that ran; Windlass' own code counts only where no other did."""
    if isinstance(error, SyntaxError):
        return f" ({error.filename}, line {error.lineno})"
    frames = traceback.extract_tb(error.__traceback__)
    there = [each for each in frames if "importlib" not in each.filename and each.filename != __file__]
    there = [each for each in there if not Path(each.filename).resolve().is_relative_to(OURS)] or there
    return f" ({there[-1].filename}, line {there[-1].lineno})" if there else ""


def line_of(actor: Actor[..., Any]) -> str:
    """Where the actor's function is defined."""
    code = getattr(inspect.unwrap(actor.fn), "__code__", None)
    return f" ({code.co_filename}, line {code.co_firstlineno})" if code is not None else ""


def _identifier(stem: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in stem)
