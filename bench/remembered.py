"""Events as they are searched: few or very many, of several users, each with its words and its vector."""

import os
import random

import asyncpg

from windlass.shared.hashing import HASH_MODEL, HASH_PROVIDER, hashed, unit
from windlass.shared.store.memory.searching import Scope

FEW = int(os.environ.get("FEW", "1000"))
MANY = int(os.environ.get("MANY", "200000"))
SEARCHES = int(os.environ.get("SEARCHES", "40"))
ALIKE, SPREAD = 400, 0.05
"""So many vectors are about each text, and so much their parts differ: what has done the same is not all one. Of the
very same one there are five among very many events: with thirty the index loses its way."""
PLACES = ("lamp", "harbour", "stair", "horn", "boat", "garden", "ledger", "storm", "engine", "tide")
DEEDS = ("mended", "painted", "counted", "drew", "summarised", "lost", "checked", "wrote down", "cleaned", "sold")

EVENTS = """
INSERT INTO agent_events (
    event_id, task_id, life, attempt, user_id, actor, provider, status, title, text, data, at, lexemes, gathered_at)
SELECT (lpad(to_hex((extract(epoch FROM made.at) * 1000)::bigint), 12, '0') || '7' || substr(md5(n::text), 1, 3)
        || '8' || substr(md5(n::text), 4, 15))::uuid, gen_random_uuid(), 1, 1, 'user-' || n % 20, 'agent', 'local',
       'completed', said.text, said.text, '{}', made.at, to_tsvector('english', said.text), made.at
FROM generate_series(1, $1::int) AS n
CROSS JOIN LATERAL (SELECT now() - ($1::int - n + 1) * interval '1 s' AS at) AS made
CROSS JOIN LATERAL (SELECT ($2::text[])[1 + n % cardinality($2::text[])] || ' number ' || n AS text) AS said
"""
VECTORS = """
INSERT INTO embeddings (event_id, model_id, vector)
SELECT e.event_id, m.model_id, ($2::real[])[like_none.number * m.dimensions + 1 : (like_none.number + 1) * m.dimensions]
FROM agent_events e, embedding_models m
CROSS JOIN LATERAL (SELECT abs(hashtext(e.event_id::text)) % $3::int) AS like_none(number)
WHERE m.state = 'active' AND e.text LIKE $1 || ' number %'
"""
MODEL = """
INSERT INTO embedding_models (model_id, name, provider, dimensions, state)
SELECT gen_random_uuid(), $1, $2, $3, 'active' WHERE NOT EXISTS (
    SELECT 1 FROM embedding_models WHERE state = 'active')
"""


def texts() -> list[str]:
    return [f"The keeper {deed} the {place} of the light" for deed in DEEDS for place in PLACES]


def alike(text: str) -> list[float]:
    """Vectors that are near that of a text, and none the same as another, one after the other."""
    chance = random.Random(text)
    about = hashed(text)
    return [part for _ in range(ALIKE) for part in unit([x + chance.uniform(-SPREAD, SPREAD) for x in about])]


def asked(number: int) -> tuple[str, Scope]:
    """Of everybody's in turns with those of somebody who has such ones."""
    deed, place = number % len(DEEDS), number * 3 % len(PLACES)
    owner = None if number % 2 else f"user-{(deed * len(PLACES) + place) % 20}"
    return f"who {DEEDS[deed]} a {PLACES[place]}?", Scope(owner)


async def fill(database_url: str, number: int) -> None:
    connection = await asyncpg.connect(database_url)
    await connection.execute(MODEL, HASH_MODEL, HASH_PROVIDER, 256)
    await connection.execute(EVENTS, number, texts())
    for text in texts():
        await connection.execute(VECTORS, text, alike(text), ALIKE)
    await connection.execute("VACUUM ANALYZE agent_events, embeddings")
    await connection.close()
