"""A probe that harms its worker is for drills only, and one that pauses its provider for all is an admin's."""

from windlass.shared.submission.checks.asking import Asking, Gives
from windlass.shared.submission.refusal import refusal

HARMFUL = {"crash", "hang"}


def check(asking: Asking) -> Gives:
    may_harm = asking.asker.is_admin and asking.settings.probe_faults
    if asking.payload.get("outcome") in HARMFUL and not may_harm:
        detail = "`crash` and `hang` need an admin and WINDLASS_PROBE_FAULTS=1"
        raise refusal(f"{asking.below}/outcome", "forbidden", detail)
    if asking.payload.get("error_type") == "RateLimited" and not asking.asker.is_admin:
        detail = "`RateLimited` pauses the provider for everybody, and needs an admin"
        raise refusal(f"{asking.below}/error_type", "forbidden", detail)
    return {}
