"""How many tasks of each lane may start now: what the claim, `why` and `scale_demand` are compared with."""

from dataclasses import dataclass

from windlass.shared.admission import ProviderView, bar, free_places, is_on_trial, picks
from windlass.shared.states import Lane


@dataclass(frozen=True)
class Admission:
    """So many of each lane, and the lanes' credit after they have gone; a trial is one that goes first."""

    fresh: int
    retry: int
    credit: int
    trial: bool = False
    resumes: int = 0

    @property
    def nobody(self) -> bool:
        return self.fresh + self.retry + self.resumes == 0


def resuming(view: ProviderView) -> int:
    """How many may go on waiting for open jobs at the provider. They need no place in its limit or in its rate."""
    if bar(view) is not None or (is_on_trial(view) and view.trial_running):
        return 0
    return min(1, view.resumes_due) if is_on_trial(view) else view.resumes_due


def admit(view: ProviderView) -> Admission:
    """Shares the free places between the lanes. A task that holds a slot already needs none of them."""
    fresh = retry = 0
    credit = view.lane_credit
    resumes = resuming(view)
    if resumes and is_on_trial(view):
        return Admission(0, 0, credit, trial=True, resumes=resumes)
    for _, (lane, after) in zip(range(free_places(view)), picks(view), strict=False):
        fresh += lane is Lane.FRESH
        retry += lane is Lane.RETRY
        credit = after
    return Admission(fresh, retry, credit, trial=is_on_trial(view) and fresh + retry > 0, resumes=resumes)
