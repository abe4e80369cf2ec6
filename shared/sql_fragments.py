"""Pieces of SQL that the tables and the statements must write alike, lest an index be passed over.

Apart from the tables, because whoever runs a statement need not build them: that takes half a second.
"""

from enum import StrEnum

from windlass.shared.states import TERMINAL, WAITING


def words(values: tuple[str, ...] | type[StrEnum]) -> str:
    """`('queued', 'retrying')`: a list of words as SQL writes it."""
    return "(" + ", ".join(f"'{value}'" for value in values) + ")"


FINISHED = f"status IN {words(TERMINAL)}"


def due(moment: str) -> str:
    """That task `t` may start at a moment: it waits, its time has come and it is not too old.

    Written out where it is asked, not called: the planner finds an index by the condition's own words.
    """
    return f"""t.status IN {words(WAITING)} AND t.available_at <= {moment}
    AND (t.expires_at IS NULL OR t.expires_at > {moment})"""


SEARCHED_TEXT = (
    "left(coalesce(payload ->> 'prompt', payload ->> 'content', ''), 300)"
    " || ' ' || left(coalesce(error ->> 'message', ''), 300)"
)
"""What `q` looks through: the beginning of the prompt or content, and the error message."""

HAS_TEXT = f"({SEARCHED_TEXT}) <> ' '"
"""Whether there is anything to look through: a probe, for one, has nothing, and costs the index of it nothing."""
