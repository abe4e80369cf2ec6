"""What stands in a payload for a value that is there only when the task is claimed: a result, a text, an element."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn, Protocol, Self

KEPT: Final = object()
"""No default was given; None is one."""


class Source(Protocol):
    """A task to be, whose result is referred to."""

    @property
    def label(self) -> str:
        """What people call it."""


class Reference:
    """Stands for a value; `draft.result["summary"]` and `draft.result["parts"][0]` are parts of it, and
    `draft.result.get("title", "Untitled")` one that may be missing."""

    def __init__(self, path: str = "", default: Any = KEPT) -> None:
        self._path = path
        self._default = default

    def __getitem__(self, part: str | int) -> Self:
        return self._part(part, self._default)

    def get(self, part: str | int, default: Any = None) -> Self:
        return self._part(part, default)

    def written(self, name_of: Callable[[Source], str]) -> dict[str, Any]:
        """As the API takes it; `name_of` says what a task is called there."""
        path = {"path": self._path} if self._path else {}
        return {**self._head(name_of), **path, **({} if self._default is KEPT else {"default": self._default})}

    def sources(self) -> tuple[Source, ...]:
        return ()

    def _head(self, name_of: Callable[[Source], str]) -> dict[str, Any]:
        raise NotImplementedError

    def _with(self, path: str, default: Any) -> Self:
        raise NotImplementedError

    def _part(self, part: str | int, default: Any) -> Self:
        if isinstance(part, bool) or not isinstance(part, str | int) or (isinstance(part, int) and part < 0):
            raise TypeError(f"a part of {self!r} is a name, or a number from 0 on, and not {part!r}")
        return self._with(f"{self._path}/{str(part).replace('~', '~0').replace('/', '~1')}", default)

    # What Python would do with it otherwise is silent nonsense: there is no value yet.

    def __str__(self) -> NoReturn:
        raise TypeError(f"{self!r} is not there yet: say windlass.text('Review this: ', …) where a text needs it")

    def __format__(self, _spec: str) -> NoReturn:
        str(self)
        raise AssertionError

    def __bool__(self) -> NoReturn:
        raise TypeError(f"{self!r} is not there yet: nothing can be decided by it while the workflow is written")

    def __iter__(self) -> NoReturn:
        raise TypeError(f"{self!r} is not there yet: `for_each` makes one task for each of its elements")


class Result(Reference):
    """What a task will have returned; of one for each, the list of their results in order."""

    def __init__(self, source: Source, path: str = "", default: Any = KEPT) -> None:
        super().__init__(path, default)
        self.source = source

    def sources(self) -> tuple[Source, ...]:
        return (self.source,)

    def list_for_each(self, name_of: Callable[[Source], str]) -> dict[str, Any]:
        """As `for_each` takes it: a list that may be missing is none."""
        if self._default is not KEPT:
            raise TypeError(f"for_each takes the list itself, and {self!r} has a default")
        return self.written(name_of)

    def _head(self, name_of: Callable[[Source], str]) -> dict[str, Any]:
        return {"$from": name_of(self.source)}

    def _with(self, path: str, default: Any) -> Self:
        return type(self)(self.source, path, default)

    def __repr__(self) -> str:
        return f"<the result of {self.source.label}{self._path}>"


class Item(Reference):
    """The element of one for each."""

    def _head(self, name_of: Callable[[Source], str]) -> dict[str, Any]:  # noqa: ARG002 - it has no name
        return {"$item": True}

    def _with(self, path: str, default: Any) -> Self:
        return type(self)(path, default)

    def __repr__(self) -> str:
        return f"<the element{self._path}>"


class Index(Reference):
    """The number of the element of one for each, from 0 on."""

    def _head(self, name_of: Callable[[Source], str]) -> dict[str, Any]:  # noqa: ARG002 - it has no name
        return {"$index": True}

    def _with(self, path: str, default: Any) -> NoReturn:  # noqa: ARG002 - there is none
        raise TypeError("a number has no parts")

    def __repr__(self) -> str:
        return "<the number of the element>"


ITEM: Final = Item()
INDEX: Final = Index()


class Text(Reference):
    """A text out of texts and references."""

    def __init__(self, pieces: tuple[str | Reference, ...]) -> None:
        super().__init__()
        self._pieces = pieces

    def sources(self) -> tuple[Source, ...]:
        return tuple(source for piece in self._pieces if isinstance(piece, Reference) for source in piece.sources())

    def _head(self, name_of: Callable[[Source], str]) -> dict[str, Any]:
        return {"$text": [each if isinstance(each, str) else each.written(name_of) for each in self._pieces]}

    def _with(self, path: str, default: Any) -> NoReturn:  # noqa: ARG002 - there is none
        raise TypeError("a text has no parts")

    def __repr__(self) -> str:
        return f"<a text of {len(self._pieces)} pieces>"


class Literal(Reference):
    """A value that only looks like a reference."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self._value = value

    def _head(self, name_of: Callable[[Source], str]) -> dict[str, Any]:  # noqa: ARG002 - it has no name
        return {"$literal": self._value}

    def _with(self, path: str, default: Any) -> NoReturn:  # noqa: ARG002 - there is none
        raise TypeError("what is literal is taken as it is")

    def __repr__(self) -> str:
        return "<a literal>"


def text(*pieces: str | Reference) -> Any:
    """A text that is put together when the task is claimed: `text("Review this: ", draft.result["summary"])`. What is
    no text is written as JSON."""
    for each in pieces:
        if not isinstance(each, str | Reference):
            raise TypeError(f"a text is made of texts and references, and {each!r} is neither")
    return Text(pieces)


def literal(value: Any) -> Any:
    """As it is, whatever it looks like: `{"$from": …}` is data here."""
    return Literal(value)


def written(value: Any, name_of: Callable[[Source], str]) -> Any:
    """A payload as the API takes it."""
    if isinstance(value, Reference):
        return value.written(name_of)
    if isinstance(value, Mapping):
        return {key: written(below, name_of) for key, below in value.items()}
    if isinstance(value, list | tuple):
        return [written(below, name_of) for below in value]
    return value


def sources_in(value: Any) -> tuple[Source, ...]:
    """Whose results a payload refers to, each as often as it does."""
    if isinstance(value, Reference):
        return value.sources()
    below = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return tuple(source for each in below for source in sources_in(each))
