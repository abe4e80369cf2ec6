"""When duties are done: what makes the janitor begin."""

from enum import StrEnum


class Rhythm(StrEnum):
    """Each keeps time by itself: none of them waits for another."""

    LEASES = "leases"
    """The janitor's own timer, with or without RabbitMQ: when the earliest lease may have ended, and now and then."""
    MINUTE = "minute"
    HOUR = "hour"
    """Periodiq rings, over RabbitMQ, for one janitor of all."""
    CALL = "call"
    """Whenever somebody calls by NOTIFY, and where the timer's look finds something, in case a call was lost."""


TIMES = {Rhythm.MINUTE: "* * * * *", Rhythm.HOUR: "7 * * * *"}
"""Of those that periodiq rings for."""

UNTIL_CALLED = 3600.0
"""Seconds, for a duty that has found nothing: what a call has missed is found by the timer's look."""
