"""Events found again: by their words and by their vectors, the two fused by rank; only what the caller may see."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.store.functions import named
from windlass.shared.store.memory import models, questions
from windlass.shared.store.memory.events import SHOWN
from windlass.shared.store.memory.indexing import FROM_EVENTS
from windlass.shared.store.record import fetch
from windlass.shared.store.rows import AgentEventRow, EmbeddingModelRow

MOST_RANKED = 5000
"""So many events that have one of the words are ranked, the newest of them."""
MOST_COMPARED = FROM_EVENTS
"""Vectors are compared one by one: with the newest events, and with those that the words have found. Where there are
more, an index says which, if there is one."""
MOST_FOUND = 100
"""So many of each go into the fused list."""
RANK_CONSTANT = 60
"""Of reciprocal rank fusion: how much the first ranks count for more than the others."""
MOST_COVERED = 10_000
"""Coverage is counted over so many of the newest events."""


@dataclass(frozen=True)
class Scope:
    """Which events: one user's or everybody's, and what else is asked for. In both searches, not after them."""

    owner: str | None
    project_id: str | None = None
    subagent_type: str | None = None
    created_after: datetime | None = None

    def condition(self, values: list[Any]) -> str:
        """Over `e`; appends what it needs to the statement's values."""
        asked = (
            ("e.user_id = ", self.owner),
            ("e.project_id = ", self.project_id),
            ("e.subagent_type = ", self.subagent_type),
            ("e.at > ", self.created_after),
        )
        said = ["true"]
        for text, value in asked:
            if value is not None:
                values.append(value)
                said.append(f"{text}${len(values)}")
        return " AND ".join(said)

    def each(self, values: list[Any]) -> str:
        """As arguments of a function, null for what is not asked for."""
        values += (self.owner, self.project_id, self.subagent_type, self.created_after)
        first = len(values) - 3
        return f"${first}::text, ${first + 1}::text, ${first + 2}::text, ${first + 3}::timestamptz"


class Hit(AgentEventRow):
    """An event, what found it and how good it is among the others."""

    score: float
    matched: list[str]


@dataclass(frozen=True)
class Found:
    """The answer, and how it was come by."""

    hits: list[Hit] = field(default_factory=list)
    model: EmbeddingModelRow | None = None
    coverage: float | None = None
    """The share of what could be found that has a vector of the model."""
    exact: bool = True
    """All of them were compared, and not only those that an index and the words have found, or the newest."""
    degraded: bool = False
    """There was no vector for the question: words alone."""


async def search(db: Database, question: str, scope: Scope, *, limit: int, user_id: str) -> Found:
    """`user_id` asks: the task that makes the question's vector is theirs."""
    model = await models.active(db)
    vector = None if model is None else await questions.vector_of(db, model, question, user_id=user_id)
    return await search_by(db, question, scope, model, vector, limit=limit)


async def search_by(
    db: Database,
    question: str,
    scope: Scope,
    model: EmbeddingModelRow | None,
    vector: list[float] | None,
    *,
    limit: int,
    compared: int = MOST_COMPARED,
) -> Found:
    """For who has the question's vector already, or none. Where there are more than are `compared`, an index is asked
    first."""
    if model is None or vector is None:
        return Found(await _hits(db, question, scope, None, None, limit), model, degraded=True)
    seen, covered = await _coverage(db, scope, model.model_id)
    exact = seen <= compared
    hits = await _hits(db, question, scope, model.model_id, vector, limit, by_index=not exact)
    return Found(hits, model, covered / seen if seen else None, exact=exact)


async def _coverage(db: Database, scope: Scope, model_id: UUID) -> tuple[int, int]:
    """How many events there are to be found, as far as they are counted, and how many of them have a vector."""
    values: list[Any] = [model_id, MOST_COVERED]
    row = await db.fetchrow(
        f"""
        SELECT count(*) AS seen, count(*) FILTER (WHERE v.event_id IS NOT NULL) AS covered FROM (
            SELECT e.event_id FROM agent_events e WHERE {scope.condition(values)} ORDER BY e.event_id DESC LIMIT $2
        ) AS e
        LEFT JOIN embeddings v ON v.event_id = e.event_id AND v.model_id = $1 AND v.vector IS NOT NULL
        """,  # noqa: S608 - placeholders
        *values,
    )
    assert row is not None, "a count always answers"
    return row["seen"], row["covered"]


async def _hits(  # noqa: PLR0917 - the parts of one statement
    db: Database,
    question: str,
    scope: Scope,
    model_id: UUID | None,
    vector: list[float] | None,
    limit: int,
    *,
    by_index: bool = False,
) -> list[Hit]:
    """Any of the question's words will do: what has more of them, and closer together, ranks first. Two events of the
    same rank are told apart by their age. Where there is no index, or it has found too few whom the scope lets through,
    the newest are compared."""
    values: list[Any] = [question, limit, model_id, vector]
    within = scope.condition(values)
    indexed = "SELECT NULL::uuid AS event_id WHERE false"
    if by_index:
        indexed = f"SELECT n.event_id FROM {named('nearest_events')}($3, $4, {MOST_FOUND}, {scope.each(values)}) AS n"  # noqa: S608
    return await fetch(
        db,
        Hit,
        f"""
        WITH asked AS (
            SELECT coalesce(
                to_tsquery('simple', nullif(replace(plainto_tsquery('english', $1)::text, ' & ', ' | '), '')),
                ''::tsquery) AS words
        ), worded AS (
            SELECT e.event_id, ts_rank_cd(e.lexemes, asked.words, 1) AS rank FROM asked, LATERAL (
                SELECT e.event_id, e.lexemes FROM agent_events e WHERE e.lexemes @@ asked.words AND {within}
                ORDER BY e.event_id DESC LIMIT {MOST_RANKED}
            ) AS e
        ), by_text AS (
            SELECT w.event_id, row_number() OVER (ORDER BY w.rank DESC, w.event_id DESC) AS place FROM worded w
            ORDER BY place LIMIT {MOST_FOUND}
        ), indexed AS MATERIALIZED (
            {indexed}
        ), compared AS (
            SELECT e.event_id FROM agent_events e WHERE {within} AND $4::real[] IS NOT NULL
            ORDER BY e.event_id DESC
            LIMIT CASE WHEN (SELECT count(*) FROM indexed) < {MOST_FOUND} THEN {MOST_COMPARED} ELSE 0 END
        ), near AS (
            SELECT c.event_id, (SELECT sum(x.a * x.b) FROM unnest(v.vector, $4::real[]) AS x(a, b)) AS likeness
            FROM (
                SELECT event_id FROM compared UNION SELECT event_id FROM by_text UNION SELECT event_id FROM indexed
            ) AS c
            JOIN embeddings v ON v.event_id = c.event_id AND v.model_id = $3 AND v.vector IS NOT NULL
        ), by_vector AS (
            SELECT n.event_id, row_number() OVER (ORDER BY n.likeness DESC, n.event_id DESC) AS place FROM near n
            WHERE n.likeness > 0 ORDER BY place LIMIT {MOST_FOUND}
        ), fused AS (
            SELECT f.event_id, sum(1.0 / ({RANK_CONSTANT} + f.place))::float AS score,
                   array_agg(f.by ORDER BY f.by) AS matched
            FROM (
                SELECT event_id, place, 'text' AS by FROM by_text UNION ALL
                SELECT event_id, place, 'vector' FROM by_vector
            ) AS f GROUP BY f.event_id
        )
        SELECT {SHOWN}, fused.score, fused.matched FROM fused JOIN agent_events e USING (event_id)
        ORDER BY fused.score DESC, event_id DESC LIMIT $2
        """,  # noqa: S608 - written here
        *values,
    )
