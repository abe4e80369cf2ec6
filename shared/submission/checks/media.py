"""A picture to begin with has to be there and to be had, and the provider has to know what it is asked for."""

from windlass.shared.actors.payloads import check_source_image
from windlass.shared.scrubbing import withhold_label
from windlass.shared.submission.checks.asking import Asking, Gives
from windlass.shared.submission.checks.provider_actions import refuse_what_it_does_not_take
from windlass.shared.submission.refusal import refusal

FOUND_BY = ("workflow_run_id", "interaction_id")
"""What lists find media by stands in columns of its own as well."""


def check(asking: Asking) -> Gives:
    payload = asking.payload
    try:
        if not asking.source_image_is_to_come:
            check_source_image(payload["action"], payload.get("source_image"))
    except ValueError as error:
        raise refusal(f"{asking.below}/source_image", "invalid-payload", str(error)) from error
    refuse_what_it_does_not_take(
        payload["action"], payload.get("params", {}), asking.provider, asking.settings, asking.below
    )
    return {name: withhold_label(payload[name]) for name in FOUND_BY if payload.get(name) is not None}
