"""The words of schedules: the same in the tables, the API, the settings and the logs."""

from enum import StrEnum


class Overlap(StrEnum):
    """What becomes of a due time while what was started before still lives."""

    SKIP = "skip"
    QUEUE_ONE = "queue-one"
    ALLOW = "allow"
    CANCEL_PREVIOUS = "cancel-previous"


class CatchUp(StrEnum):
    """What becomes of due times that nobody was there for."""

    NONE = "none"
    LATEST = "latest"
    ALL = "all"


class ScheduleState(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"


class PauseReason(StrEnum):
    """Why nothing is started: somebody wished it, too many failures in a row, or nobody's key to act by."""

    ASKED_FOR = "asked-for"
    FAILURES = "failures"
    OWNER_HAS_NO_KEY = "owner-has-no-key"


class Outcome(StrEnum):
    """What became of a due time. One that waits becomes one of the others."""

    WAITING = "waiting"
    STARTED = "started"
    SKIPPED = "skipped"
    MISSED = "missed"
    REFUSED = "refused"


class Cause(StrEnum):
    """Why there is an occurrence: its time came, somebody asked for one now, or for those of a time that is past."""

    TIME = "time"
    TRIGGER = "trigger"
    BACKFILL = "backfill"


class Kind(StrEnum):
    """What is started."""

    TASK = "task"
    WORKFLOW = "workflow"
    PROJECT = "project"


SYSTEM = "system"
"""Who owns the schedules that stand in the configuration and in actors' code."""
