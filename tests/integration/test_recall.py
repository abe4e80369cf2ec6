"""How well questions find what they mean in other words: by text, by `hash-256`, and by both."""

import csv
from pathlib import Path

from tests.support.engine.memory import embed_all, gather_now, with_the_hash_model
from tests.support.engine.store import Engine, on_the_engine
from windlass.shared.hashing import hashed
from windlass.shared.store.memory import models, searching
from windlass.shared.store.memory.searching import Found, Scope

DATA = Path(__file__).parent.parent / "data" / "paraphrases.tsv"
"""A hundred tasks, what came of them, and a question about each in other words."""
EVERYBODY = Scope(None)


def recall(found: dict[str, Found], wanted: dict[str, str], at: int) -> float:
    """The share of the questions whose event is among the first so many."""
    right = [wanted[question] in [hit.title for hit in each.hits[:at]] for question, each in found.items()]
    return sum(right) / len(right)


async def written(engine: Engine, rows: list[dict[str, str]]) -> None:
    """As the teller would."""
    await engine.sql(
        """
        INSERT INTO agent_events (event_id, task_id, life, attempt, user_id, actor, provider, status, title, text)
        SELECT ('0198c0de-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, gen_random_uuid(), 1, 1, 'ann', 'agent',
               'local', 'completed', prompt, prompt || E'\n\n' || answer
        FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS one(prompt, answer, n)
        """,
        [row["prompt"] for row in rows],
        [row["answer"] for row in rows],
    )


@on_the_engine
async def test_both_together_find_at_least_as_much_as_the_better_of_the_two(engine: Engine) -> None:
    with DATA.open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    wanted = {row["question"]: row["prompt"] for row in rows}
    assert len(wanted) == len(set(wanted.values())) == 100
    await with_the_hash_model(engine)
    await written(engine, rows)
    await gather_now(engine)
    await embed_all(engine)
    model = await models.active(engine.pool)
    ways: dict[str, dict[str, Found]] = {"text": {}, "hash-256": {}, "fused": {}}
    for question in wanted:
        asked = {"text": (question, None), "hash-256": ("", hashed(question)), "fused": (question, hashed(question))}
        for way, (words, vector) in asked.items():
            ways[way][question] = await searching.search_by(engine.pool, words, EVERYBODY, model, vector, limit=10)
    measured = {way: recall(found, wanted, at=3) for way, found in ways.items()}
    print("recall@3:", measured)
    assert measured["fused"] >= max(measured["text"], measured["hash-256"]), measured
