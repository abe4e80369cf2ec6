"""The subscriptions of a task: bits that are written at its submit, for the features that follow its moves."""

from enum import IntFlag
from types import MappingProxyType


class Concern(IntFlag):
    """A plain task has none, and its moves write no outbox row."""

    RUN = 1
    WORKFLOW = 2
    WEBHOOK = 4
    MEMORY = 8
    SCHEDULE = 16
    KEY = 32
    REFERENCES = 64
    """No feature: the payload refers to results of other tasks, which the worker resolves after the claim."""
    DELIVERY = 128
    """It carries a delivery to an endpoint. Its concurrency key is the endpoint's id."""

    @property
    def word(self) -> str:
        """As the outbox and the logs name it."""
        assert self.name is not None, "a single concern has a name"
        return self.name.lower()


SUBSCRIBERS = Concern.RUN | Concern.WORKFLOW | Concern.MEMORY | Concern.SCHEDULE | Concern.WEBHOOK | Concern.DELIVERY
"""Features that handle moves from the outbox (`shared/features`). Keys and references are the engine's own."""

SUBJECTS = MappingProxyType(
    {
        Concern.RUN: "project_id",
        Concern.WORKFLOW: "group_id",
        Concern.SCHEDULE: "schedule_id",
        Concern.DELIVERY: "concurrency_key",
    }
)
"""The column of a task that names a feature's subject, where that is not the task itself."""

LEFT_OUT_ACTORS = ("embed", "probe", "webhook")
"""Global subscriptions do not cover the tasks of these actors: a delivery that announced itself would never end."""

RECEIVES_SUBMITS = Concern.WORKFLOW
"""Features that also get an outbox row for each new task, because they count their tasks."""

OWNERS = Concern.RUN
"""Features that own their tasks: the engine revives such a task only for its owner."""
