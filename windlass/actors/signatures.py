"""Shapes of functions, for type checkers: how they tell an actor whose calls they can check.

A `ParamSpec` has all of a function's parameters, and a caller gives all but the context. A type checker can take away
the first parameter, so a context that comes first is no obstacle. One that is required by its name cannot be taken
away. Then every field has to be accepted, and such functions must be told apart.

Each `TakesN` accepts what can be called with N arguments by their places and nothing by name, whatever their types are
(`Never` fits all), and carries the function's own parameters.
"""

from typing import Never, ParamSpec, Protocol, TypeVar, overload

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


class Payload:
    """Is no context: a first parameter that takes both says nothing about itself, such as `object`."""


class Takes0(Protocol[P, R_co]):
    @overload
    def __call__(self) -> R_co: ...
    @overload
    def __call__(self, *args: P.args, **options: P.kwargs) -> R_co: ...


class Takes1(Protocol[P, R_co]):
    @overload
    def __call__(self, a: Never, /) -> R_co: ...
    @overload
    def __call__(self, *args: P.args, **options: P.kwargs) -> R_co: ...


class Takes2(Protocol[P, R_co]):
    @overload
    def __call__(self, a: Never, b: Never, /) -> R_co: ...
    @overload
    def __call__(self, *args: P.args, **options: P.kwargs) -> R_co: ...


class Takes3(Protocol[P, R_co]):
    @overload
    def __call__(self, a: Never, b: Never, c: Never, /) -> R_co: ...
    @overload
    def __call__(self, *args: P.args, **options: P.kwargs) -> R_co: ...


class Takes4(Protocol[P, R_co]):
    @overload
    def __call__(self, a: Never, b: Never, c: Never, d: Never, /) -> R_co: ...
    @overload
    def __call__(self, *args: P.args, **options: P.kwargs) -> R_co: ...


class Takes5(Protocol[P, R_co]):
    @overload
    def __call__(self, a: Never, b: Never, c: Never, d: Never, e: Never, /) -> R_co: ...
    @overload
    def __call__(self, *args: P.args, **options: P.kwargs) -> R_co: ...


class Takes6(Protocol[P, R_co]):
    @overload
    def __call__(self, a: Never, b: Never, c: Never, d: Never, e: Never, f: Never, /) -> R_co: ...
    @overload
    def __call__(self, *args: P.args, **options: P.kwargs) -> R_co: ...
