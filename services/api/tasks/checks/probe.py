"""A probe that harms its worker is for drills only, and one that pauses its provider for all is an admin's."""

from windlass.services.api.http.bodies import field_problem
from windlass.services.api.tasks.checks.asking import Asking, Gives

HARMFUL = {"crash", "hang"}


def check(asking: Asking) -> Gives:
    may_harm = asking.caller.is_admin and asking.settings.probe_faults
    if asking.payload.get("outcome") in HARMFUL and not may_harm:
        detail = "`crash` and `hang` need an admin and WINDLASS_PROBE_FAULTS=1"
        raise field_problem(f"{asking.below}/outcome", "forbidden", detail, status=403)
    if asking.payload.get("error_type") == "RateLimited" and not asking.caller.is_admin:
        detail = "`RateLimited` pauses the provider for everybody, and needs an admin"
        raise field_problem(f"{asking.below}/error_type", "forbidden", detail, status=403)
    return {}
