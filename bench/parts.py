"""The parts of the report, in their order, and what each is called."""

from typing import Final

PARTS: Final = {
    "contest": "Side by side with the others",
    "engine": "From submit to start, and what each stage costs",
    "narrow": "One and three at a time",
    "fan": "A parent with 10,000 dependents",
    "many": "A thousand at once in one process",
    "flow": "Flow control",
    "projects": "Projects",
    "workflows": "Workflows",
    "webhooks": "Webhooks",
    "schedules": "Schedules",
    "memory": "Memory",
    "outbox": "The outbox",
    "api": "The API",
    "streams": "Streams",
    "idle_streams": "Streams that nothing concerns",
    "output": "What an agent prints",
    "page": "The page",
    "history": "With 0 / 100,000 / 2,000,000 finished tasks in history",
    "lists": "Every kind of list page",
    "queues": "Three hundred queues in one worker",
    "backlog": "With 1,000,000 tasks waiting",
    "snapshot": "200,000 tasks under an open snapshot",
    "footprint": "Bytes, memory and idle cost",
}
