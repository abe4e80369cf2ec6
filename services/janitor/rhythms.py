"""When duties are done: what makes the janitor begin."""

from enum import StrEnum


class Rhythm(StrEnum):
    """Each keeps time by itself: none of them waits for another."""

    LEASES = "leases"
    """The janitor's own timer, with or without RabbitMQ: when the earliest lease may have ended, and now and then."""
    DUE = "due"
    """When a schedule is due, or somebody calls for one, with or without RabbitMQ."""
    MINUTE = "minute"
    HOUR = "hour"
    """Periodiq rings, over RabbitMQ, for one janitor of all."""
    CALL = "call"
    """Whenever somebody calls by NOTIFY, and now and then in case a call was lost."""


TIMES = {Rhythm.MINUTE: "* * * * *", Rhythm.HOUR: "7 * * * *"}
"""Of those that periodiq rings for."""
