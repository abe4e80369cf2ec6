"""Why a task does not run: one vocabulary for `why`, for the admission that decides it, and for a claim's refusal."""

from enum import StrEnum


class Reason(StrEnum):
    """The words of the API, the logs and the metrics' labels; SQL says them in `claim_tasks` and `bar_of`."""

    RUNNING = "running"
    FINISHED = "finished"
    WAITING_FOR_TIME = "waiting-for-time"
    WAITING_FOR_DEPENDENCIES = "waiting-for-dependencies"
    WAITING_FOR_APPROVAL = "waiting-for-approval"
    WORKFLOW_ESCALATED = "workflow-escalated"
    KEY_LIMIT = "key-limit"
    BROKER_AWAY = "broker-away"
    BROKER_BLOCKED = "broker-blocked"
    PROVIDER_LIMIT = "provider-limit"
    PROVIDER_PAUSED = "provider-paused"
    RATE_LIMITED_UNTIL = "rate-limited-until"
    BREAKER_OPEN = "breaker-open"
    NO_WORKER = "no-worker"
    BEHIND_OTHERS = "behind-others"
    ABOUT_TO_START = "about-to-start"

    # A claim alone is told these.
    UNKNOWN = "unknown"
    ON_TRIAL = "on-trial"
    MUST_RUN_ALONE = "must-run-alone"
    OTHER = "other"
    """What a newer schema says and this version has no word for: both run side by side during an upgrade."""

    @classmethod
    def of_refusal(cls, word: str) -> "Reason":
        try:
            return cls(word)
        except ValueError:
            return cls.OTHER


SAID_OF_A_REFUSED_TASK: dict[Reason, tuple[Reason, ...]] = {
    Reason.UNKNOWN: (),
    Reason.ON_TRIAL: (Reason.RATE_LIMITED_UNTIL, Reason.BREAKER_OPEN),
    Reason.MUST_RUN_ALONE: (Reason.NO_WORKER, Reason.BEHIND_OTHERS),
    Reason.OTHER: (),
}
"""What `why` says of a task whose claim was refused for a reason that is no answer of its own."""

OF_WHY = tuple(each for each in Reason if each not in SAID_OF_A_REFUSED_TASK)
