"""Which sockets that nobody closed fail a test."""

import gc
import socket
import warnings
from collections.abc import Callable
from types import FunctionType

from windlass.services.laptop import ports


def leak() -> None:
    socket.create_server(("127.0.0.1", 0)).detach  # noqa: B018 - dropped at once


def complaints_about(leak: Callable[[], None]) -> list[str]:
    """And not about what an earlier test has left behind."""
    with warnings.catch_warnings(action="ignore"):
        gc.collect()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        leak()
        gc.collect()
    return [str(each.message) for each in heard]


def test_one_that_a_test_forgot_is_closed_and_one_of_ours_is_told_with_its_place() -> None:
    assert complaints_about(leak) == []
    in_our_code = FunctionType(leak.__code__.replace(co_filename=ports.__file__), globals())
    (complaint,) = complaints_about(in_our_code)
    assert complaint.startswith("unclosed <socket.socket")
    assert f"{ports.__file__}:{leak.__code__.co_firstlineno + 1}" in complaint
