"""Anybody may ask for the vector of a text; what becomes of others' memory is Windlass' own work."""

from windlass.shared.submission.checks.asking import Asking, Gives
from windlass.shared.submission.refusal import refusal


def check(asking: Asking) -> Gives:
    if {name for name, value in asking.payload.items() if value is not None} != {"text"}:
        detail = "say a `text` alone; jobs make themselves, and `POST /embedding-jobs/{id}/retry` repeats one"
        raise refusal(asking.below, "forbidden", detail)
    return {}
