"""The documentation as one walk: its pages in their order, each with a last line that names the next."""

import re
from itertools import pairwise
from pathlib import Path

DOCS = Path(__file__).parent

WALK = {
    "../README.md": "Windlass",
    "README.md": "the documentation",
    "trying_it.md": "trying it",
    "command_line.md": "the command line and the Python client",
    "page.md": "the page",
    "life_of_a_task.md": "the life of a task",
    "state_machine.md": "the state machine",
    "lock_order.md": "the order of locks",
    "adding_an_actor.md": "adding an actor",
    "adding_an_agent.md": "adding an agent",
    "adding_a_provider.md": "adding a provider",
    "adding_a_feature.md": "adding a feature",
    "coming_from_dramatiq.md": "coming from Dramatiq",
    "coming_from_celery.md": "coming from Celery",
    "coming_from_temporal.md": "coming from Temporal",
    "projects.md": "projects",
    "project_states.md": "the states of a project",
    "workflows.md": "workflows",
    "workflow_states.md": "the states of a workflow",
    "webhooks.md": "webhooks",
    "schedules.md": "schedules",
    "memory.md": "memory and figures",
    "operating.md": "operating",
    "metrics.md": "metrics",
    "settings.md": "every setting",
    "comparison.md": "comparison with other systems",
    "proof.md": "proof",
    "glossary.md": "the glossary",
    "decisions/README.md": "the decisions",
}
"""By file, as seen from `docs`: what links call the page. The last one names no other."""

NEXT = re.compile(r"\n+Next: \[[^\]]*\]\([^)]*\)\.\n*\Z")


def walked(drawn: dict[Path, str]) -> dict[Path, str]:
    """Every page of the walk, those that are drawn and those that are written, with its last line."""
    names = list(WALK)
    pages = {name: (DOCS / name).resolve() for name in names}
    texts = {name: drawn.get(page) or page.read_text() for name, page in pages.items()}
    return {pages[name]: _with_next(texts[name], name, following) for name, following in pairwise(names)}


def _with_next(text: str, name: str, following: str) -> str:
    link = f"docs/{following}" if name == "../README.md" else following
    return f"{NEXT.sub('', text).rstrip()}\n\nNext: [{WALK[following]}]({link}).\n"
