"""Actors, whoever wrote them: what a worker cannot serve, durable steps, and what one version leaves to another."""

from windlass.shared.metrics.declaring import ACTORS, counter, gauge

QUEUE_BROKEN = gauge(
    "windlass_queue_broken",
    "1 for a queue that this worker was to serve and cannot, 0 for one that it serves; where a module cannot be "
    "loaded, its name stands for the queues that nobody knows",
    ["queue"],
    of=[ACTORS],
)
STEPS = counter(
    "windlass_steps_total",
    "Durable steps: `result` is run, or given_back where an earlier attempt had finished it",
    ["actor", "result"],
    of=[ACTORS],
)
FOR_ANOTHER_VERSION = counter(
    "windlass_tasks_for_another_version_total",
    "Tasks handed back, free, because this worker's version of the actor refuses their payload and another takes it",
    ["actor"],
    of=[ACTORS],
)
