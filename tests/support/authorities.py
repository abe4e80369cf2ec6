"""Whom the world trusts is read from a file for every HTTP client that is opened, in 25 ms of CPU, and tests open more
than a thousand: it is read once. Contexts with certificates of a test's own are made as ever."""

import functools
import ssl
from typing import Any

import certifi


def read_once() -> None:
    make = ssl.create_default_context
    the_usual = functools.cache(lambda: make(cafile=certifi.where()))

    def make_unless_usual(*arguments: Any, **options: Any) -> ssl.SSLContext:
        usual = not arguments and options == {"cafile": certifi.where()}
        return the_usual() if usual else make(*arguments, **options)

    ssl.create_default_context = make_unless_usual
