"""Who is told of the moves of tasks: each concern's SQL function, filled into `tell_moves` when it is installed."""

from collections.abc import Mapping
from types import MappingProxyType

from windlass.shared.concerns import SUBSCRIBERS, Concern

Tellers = Mapping[Concern, str]
"""By concern the function `teller(moves jsonb) RETURNS void`."""

TELLERS: Tellers = MappingProxyType(
    {
        Concern.WORKFLOW: "tell_workflow",
        Concern.KEY: "tell_key",
    }
)
"""Each hears of the moves of its own concern alone, maybe late, and maybe in another order than that of their events:
what counts is in the rows. See docs/decisions/0038."""


GUARDED = "tell_or_note"
"""The function that calls a teller and keeps what fails there from the move."""

OUTBOX = "write_outbox"
"""The function that writes moves for a concern that has a subscriber and no teller."""

EVENTS = "publish_untold"
"""The function that publishes the events among them that are about no task."""


def told(tellers: Tellers) -> str:
    """The rows `(subject, bit)` of those that have a teller."""
    rows = ", ".join(f"('{concern.word}', {concern.value})" for concern in tellers)
    return f"VALUES {rows}" if rows else "SELECT NULL::text, 0 WHERE false"


def telling_of_one(tellers: Tellers) -> str:
    """What tells those whom one move concerns, in the order of their bits. Who is the only one is found at once: each
    condition is prepared anew in every transaction."""
    if not tellers:
        return ""
    only = " ".join(f"WHEN {concern.value} THEN '{concern.word}'" for concern in sorted(tellers))
    each = " ".join(
        f"IF concerns & {concern.value} <> 0 THEN PERFORM {GUARDED}('{concern.word}', moves); END IF;"
        for concern in sorted(tellers)
    )
    return f"""DECLARE
            sole text := CASE concerns {only} END;
        BEGIN
            IF sole IS NOT NULL THEN PERFORM {GUARDED}(sole, moves); ELSE {each} END IF;
        END;"""


def telling(tellers: Tellers) -> str:
    """The branches that call each teller with its moves."""
    calls = {concern: f"{teller}(moves)" for concern, teller in tellers.items()}
    # Moves that an older build left untold.
    calls |= {concern: f"{OUTBOX}(moves, {concern.value}), {EVENTS}(moves)" for concern in SUBSCRIBERS}
    return "\n    ".join(
        f"ELSIF subject = '{concern.word}' THEN\n        PERFORM {call};" for concern, call in calls.items()
    )


def counted_alone(concerns: str, tellers: Tellers) -> str:
    """Whether these are of the workflow's own teller and of no other: it has a way to be told of many at once."""
    if tellers.get(Concern.WORKFLOW) != TELLERS[Concern.WORKFLOW]:
        return "false"
    return f"({concerns} & {int(sum(tellers) | SUBSCRIBERS)} = {Concern.WORKFLOW.value})"
