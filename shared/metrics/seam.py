"""The seam between what happened and what is counted of it: counting comes afterwards, and undoes nothing."""

import logging
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

log = logging.getLogger("metrics")

Facts = ParamSpec("Facts")

_told: set[tuple[str, type[Exception]]] = set()
"""What has gone wrong here before: thousands of tasks a second would say the same."""


def counted_afterwards(count: Callable[Facts, None]) -> Callable[Facts, None]:
    """For functions that count what has been committed. Whoever committed it goes on, whatever becomes of the counting:
    a claim that Postgres has granted must not fail because a row lacked a column that only a metric needs."""

    @wraps(count)
    def counting(*facts: Facts.args, **more: Facts.kwargs) -> None:
        try:
            count(*facts, **more)
        except Exception as error:
            if (count.__qualname__, type(error)) not in _told:
                _told.add((count.__qualname__, type(error)))
                log.exception("%s could not be counted, which changes nothing else; said once", count.__qualname__)

    return counting
