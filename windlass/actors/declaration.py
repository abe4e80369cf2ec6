"""`@actor`: makes a function known as work that Windlass can carry; called, it stays the plain function."""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, get_type_hints, overload

from windlass.actors import signatures
from windlass.actors.context import Context, is_context
from windlass.actors.names import fault_of
from windlass.actors.sending import F, Sending
from windlass.shared.concurrency_keys import is_pointer

P = ParamSpec("P")
R = TypeVar("R")


class Misdeclared(TypeError):
    """An actor that cannot be one as it is declared; the message says what to change."""


class Actor(Sending[P, R, F]):
    """A function and what it has declared. What was left out is for the TOML file, or the defaults, to say.

    A class is one, too, if its instances can be called: it is made once per worker process.
    """

    __name__: str

    if not TYPE_CHECKING:

        def __class_getitem__(cls, parameters: Any) -> Any:
            """`Actor[P, R]`, too: typing knows no defaults before Python 3.13."""
            return super().__class_getitem__((*parameters, ...)[:3])

    def __init__(
        self,
        fn: Callable[P, R],
        *,
        name: str | None = None,
        throws: type[BaseException] | Iterable[type[BaseException]] = (),
        timeout_seconds: float | None = None,
        max_retries: int | None = None,
        max_age_seconds: float | None = None,
        provider: str | None = None,
        concurrency: Mapping[str, Any] | None = None,
        isolate: bool = False,
        memory: bool = False,
        schedule: str | Mapping[str, Any] | None = None,
    ) -> None:
        if not callable(fn):
            raise Misdeclared(f"@actor stands before a function, not before {fn!r}")
        functools.update_wrapper(self, fn)
        self.fn = fn
        self.name = fn.__name__.lower().replace("_", "-") if name is None else name
        self.throws = _errors(self.name, throws)
        self.timeout_seconds = _number(self.name, "timeout_seconds", timeout_seconds, above=0)
        self.max_retries = max_retries
        self.max_age_seconds = _number(self.name, "max_age_seconds", max_age_seconds)
        self.provider = provider
        self.concurrency_key, self.concurrency_limit = _concurrency(self.name, concurrency)
        self.isolate = isolate
        self.memory = memory
        self.schedule = {"cron": schedule} if isinstance(schedule, str) else None if schedule is None else {**schedule}
        if fault := fault_of(self.name):
            raise Misdeclared(f"the actor's name {self.name!r} {fault}")
        if max_retries is not None and (not _is_whole(max_retries) or not 0 <= max_retries <= 100):
            raise Misdeclared(f"actor {self.name}: max_retries must be a whole number from 0 to 100")

    def __call__(self, *arguments: P.args, **options: P.kwargs) -> R:
        return self.fn(*arguments, **options)

    @property
    def is_class(self) -> bool:
        return inspect.isclass(self.fn)

    @property
    def called(self) -> Callable[..., Any]:
        """What runs for a task, with its annotations."""
        return self.fn.__call__ if self.is_class else self.fn  # type: ignore[operator] # a class: its instances'

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.called)

    @property
    def fields(self) -> tuple[str, ...]:
        """The parameters that a payload fills, in their order."""
        try:
            hints = get_type_hints(self.called)
        except NameError:
            hints = {}  # whoever draws the schema says so
        names = list(inspect.signature(self.called).parameters)[1 if self.is_class else 0 :]
        return tuple(name for name in names if not is_context(hints.get(name)))

    def __repr__(self) -> str:
        return f"<actor {self.name}>"


class Decorator:
    """`@actor`, or `@actor(timeout_seconds=600, throws=(ValueError,))`.

    `throws` are errors that trying again cannot mend. `provider` does the work, by its own name and without a limit
    unless it is told otherwise. `concurrency={"key": "/account", "limit": 2}` runs so many at once with the same value
    at that place of the payload. `isolate=True` gives each attempt a process of its own, which is killed if it does
    not stop. `memory=True` writes down what its tasks did, so that it can be searched. `schedule="30 2 * * *"` starts a
    task of it at those times; a mapping says more of it: `timezone`, `payload`, and what else a schedule has. The TOML
    file's `[actors.NAME]` has the last word about all but `throws` and `schedule`.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options

    # A type checker knows the fields of a call where a caller has to give all parameters but the first: `signatures`
    # explains how. Otherwise it takes any fields.
    @overload
    def __call__(self, fn: Callable[Concatenate[signatures.Payload, ...], R], /) -> Actor[..., R, ...]: ...
    @overload
    def __call__(self, fn: Callable[Concatenate[Context, F], R], /) -> Actor[Concatenate[Context, F], R, F]: ...
    @overload
    def __call__(self, fn: signatures.Takes0[P, R], /) -> Actor[P, R, P]: ...
    @overload
    def __call__(self, fn: signatures.Takes1[P, R], /) -> Actor[P, R, P]: ...
    @overload
    def __call__(self, fn: signatures.Takes2[P, R], /) -> Actor[P, R, P]: ...
    @overload
    def __call__(self, fn: signatures.Takes3[P, R], /) -> Actor[P, R, P]: ...
    @overload
    def __call__(self, fn: signatures.Takes4[P, R], /) -> Actor[P, R, P]: ...
    @overload
    def __call__(self, fn: signatures.Takes5[P, R], /) -> Actor[P, R, P]: ...
    @overload
    def __call__(self, fn: signatures.Takes6[P, R], /) -> Actor[P, R, P]: ...
    @overload
    def __call__(self, fn: Callable[P, R], /) -> Actor[P, R, ...]: ...
    @overload
    def __call__(
        self,
        *,
        name: str | None = None,
        throws: type[BaseException] | Iterable[type[BaseException]] = (),
        timeout_seconds: float | None = None,
        max_retries: int | None = None,
        max_age_seconds: float | None = None,
        provider: str | None = None,
        concurrency: Mapping[str, Any] | None = None,
        isolate: bool = False,
        memory: bool = False,
        schedule: str | Mapping[str, Any] | None = None,
    ) -> "Decorator": ...
    def __call__(self, fn: Any = None, /, **options: Any) -> Any:  # type: ignore[misc] # it accepts all of them
        declared = {**self._options, **options}
        return Decorator(declared) if fn is None else Actor(fn, **declared)


actor = Decorator({})


def _errors(name: str, throws: Any) -> tuple[type[BaseException], ...]:
    given = (throws,) if inspect.isclass(throws) else tuple(throws)
    for each in given:
        if not (inspect.isclass(each) and issubclass(each, Exception)):
            raise Misdeclared(f"actor {name}: throws must be exceptions, and {each!r} is none")
    return given


def _number(name: str, option: str, value: Any, *, above: float | None = None) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0 or value == above:
        raise Misdeclared(f"actor {name}: {option} must be a number of seconds{' above 0' if above == 0 else ''}")
    return value


def _concurrency(name: str, said: Mapping[str, Any] | None) -> tuple[tuple[str, ...], int | None]:
    if said is None:
        return (), None
    key = said.get("key") or ()
    pointers = (key,) if isinstance(key, str) else tuple(key)
    limit = said.get("limit")
    right = pointers and all(isinstance(each, str) and is_pointer(each) for each in pointers)
    if not right or not _is_whole(limit) or limit < 1 or set(said) - {"key", "limit"}:  # type: ignore[operator]
        raise Misdeclared(f'actor {name}: concurrency must be as {{"key": "/account", "limit": 2}}')
    return pointers, limit


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
