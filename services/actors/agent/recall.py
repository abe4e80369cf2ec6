"""What an agent is told of the past: the nearest of its user's events, and its user's figures, as its table says."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

from windlass.services.actors.worker.context.context import Context
from windlass.shared.schedules.words import SYSTEM
from windlass.shared.store.memory import models, questions, recalling, searching
from windlass.shared.store.memory.questions import LONGEST_QUESTION, WAIT_SECONDS
from windlass.shared.store.memory.searching import Found, Scope
from windlass.shared.store.operating import statistics
from windlass.shared.toml_tables import AgentSettings

LOOK_SECONDS = 0.1
SHOWN = ("event_id", "task_id", "actor", "subagent_type", "status", "title", "text", "at")
GROUPS = ("actor", "subagent_type", "provider", "project_id")


def recall(context: Context, prompt: str, agent: AgentSettings) -> dict[str, Any]:
    """What goes on its stdin beside the prompt. The task's history says which events, and of how many days."""
    told: dict[str, Any] = {}
    noted: dict[str, Any] = {}
    if agent.memory:
        found = _nearest(context, prompt, agent.memory)
        told["memories"] = [{name: hit[name] for name in SHOWN} for hit in found.hits]
        noted = {
            "memories": [hit.event_id for hit in found.hits],
            "model": None if found.model is None else found.model.name,
            "degraded": found.degraded,
        }
    if agent.stats:
        told["stats"] = _figures(context, agent.stats)
        noted["stats_days"] = agent.stats
    if noted:
        context.ask(recalling.note, context.task, noted)
    return told


def _nearest(context: Context, prompt: str, number: int) -> Found:
    """Waited for here, and not by the store: others of this process have something to say to it meanwhile."""
    question = prompt[:LONGEST_QUESTION]
    model = context.ask(models.active)
    vector = None
    until = time.monotonic() + WAIT_SECONDS
    while model is not None:
        vector = context.ask(questions.vector_of, model, question, user_id=context.user_id, wait_seconds=0)
        if vector is not None or time.monotonic() >= until:
            break
        context.sleep(LOOK_SECONDS)
    return context.ask(searching.search_by, question, Scope(context.user_id), model, vector, limit=number)


def _figures(context: Context, days: int) -> list[dict[str, Any]]:
    """Its user's. The operator's own agents, which a schedule of the configuration starts, are told everybody's."""
    last = datetime.now(UTC).date()
    first = last - timedelta(days=days - 1)
    owner, group_by = (None, (*GROUPS, "user_id")) if context.user_id == SYSTEM else (context.user_id, GROUPS)
    rows = context.ask(statistics.between, first, last, group_by=group_by, owner=owner)
    return [statistics.document_of(row, group_by) for row in rows]
