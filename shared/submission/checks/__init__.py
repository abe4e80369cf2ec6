"""What no schema can say of a payload: for actors that come with Windlass, a small module each, by the actor's name."""

from collections.abc import Callable

from windlass.shared.submission.checks import agent, embed, media, probe
from windlass.shared.submission.checks.asking import Asking, Gives

Check = Callable[[Asking], Gives]
"""Raises Refused, or returns the fields of the submission that follow from the payload."""

CHECKS: dict[str, Check] = {"agent": agent.check, "embed": embed.check, "media": media.check, "probe": probe.check}
