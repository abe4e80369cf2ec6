"""Who is concerned by what becomes of a task: bits that are written at its submit, and say whom its moves are told."""

from enum import IntFlag
from types import MappingProxyType


class Concern(IntFlag):
    """Of a plain task there is none, and its moves are told to nobody."""

    RUN = 1
    WORKFLOW = 2
    WEBHOOK = 4
    MEMORY = 8
    SCHEDULE = 16
    KEY = 32
    REFERENCES = 64
    """Nobody is told: its payload refers to results of others, which whoever claims it asks for."""
    DELIVERY = 128
    """It carries a delivery to an endpoint. Its concurrency key is the endpoint's id."""

    @property
    def word(self) -> str:
        """As `untold` and the logs name it."""
        assert self.name is not None, "a single concern has a name"
        return self.name.lower()


SUBSCRIBERS = Concern.RUN | Concern.MEMORY | Concern.SCHEDULE | Concern.WEBHOOK | Concern.DELIVERY
"""Features that handle moves from the outbox (`shared/features`). Every other concern has a teller
(`shared/store/tellers.py`); a test checks that each has exactly one of the two."""

SUBJECTS = MappingProxyType(
    {Concern.RUN: "project_id", Concern.SCHEDULE: "schedule_id", Concern.DELIVERY: "concurrency_key"}
)
"""The column of a task that names a feature's subject, where that is not the task itself."""

LEFT_OUT_ACTORS = ("embed", "probe", "webhook")
"""Global subscriptions do not cover the tasks of these actors: a delivery that announced itself would never end."""

HEARS_OF_SUBMITS = Concern.WORKFLOW
"""Whom a new task is told as well: a workflow counts it. A key is taken at the start, and all others hear of ends
alone."""

LOCKS_A_SUBJECT = Concern.WORKFLOW
"""Whoever ends such a task waits for the workflow that it is of, which may be busy."""

OWNERS = Concern.RUN
"""Features that own their tasks: the engine revives such a task only for its owner."""
