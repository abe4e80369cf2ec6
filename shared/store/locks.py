"""The order in which everybody takes locks, written once: whoever keeps to it never waits in a circle.

Who has locked something waits only for what stands further down, and within a line only for what sorts after it. What
is wanted out of order is taken if it is free (`SKIP LOCKED`), and else left to somebody who has locked nothing yet.
`docs/lock_order.md` is drawn from this; `tests/integration/test_lock_order.py` drives every pair of moves.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Lock:
    """What is locked: rows of a table, by their key, or something else; in which order among themselves; by whom."""

    what: str
    order: str
    who: str
    table: str | None = None
    key: str | None = None


LOCK_ORDER = (
    Lock(
        "the migration",
        "one, `windlass migrate`",
        "`migrate` takes it before it looks at the schema: of several, one migrates",
    ),
    Lock(
        "submission keys",
        "idempotency before dedupe, each by user and key",
        "a submit with keys takes them before any task, and waits a second at most; a revive, also in a chunk or by a "
        "callback, those of the tasks that it is about, and skips those of dependents; who forgets them skips",
        "submission_keys",
        key="user_id",
    ),
    Lock("a bulk job", "one", "a chunk locks its job, then the tasks; nobody locks two", "bulk_jobs", key="bulk_id"),
    Lock(
        "a page left unsettled",
        "one",
        "`settle_next` takes the first that is free (`SKIP LOCKED`)",
        "unsettled",
        key="unsettled_id",
    ),
    Lock(
        "moves left untold",
        "by number",
        "`tell_again` takes those that are free (`SKIP LOCKED`), then what their tellers lock",
        "untold",
        key="untold_id",
    ),
    Lock(
        "subjects of the outbox",
        "advisory, by hash of feature and subject",
        "the orchestrator that handles their moves takes those that are free; a read that catches up waits for them in "
        "order, and has locked nothing before but a bulk job. A schedule's turn takes those of its projects after the "
        "schedule's row, for which no project waits. The rows of the outbox are locked by their deletion alone",
        "outbox",
    ),
    Lock(
        "a worker's turn",
        "advisory, by its name",
        "whoever asks for its next tasks, also while it ends others, or recalls what was not answered: the calls of "
        "one worker come one after the other",
    ),
    Lock(
        "workers",
        "by id",
        "a recall its own; a renewal and a stall go on to tasks, and skip a worker's row that is locked; a guardian's "
        "word about several waits for them by id",
        "workers",
        key="worker_id",
    ),
    Lock("keys", "one", "`revoke_key`, before what its owner has no right to any more", "api_keys", key="key_id"),
    Lock(
        "schedules",
        "by id",
        "every change, every decision about a due time, and the handling of ends of what it started; an orchestrator "
        "that fires skips what is locked; ends of tasks, workflows and projects lock none and write to the outbox",
        "schedules",
        key="schedule_id",
    ),
    Lock(
        "global subscriptions",
        "one row",
        "whoever subscribes an endpoint to events, before the endpoint; the janitor that unsets a bit. Moves read it "
        "without a lock",
        "global_subscriptions",
        key="is_only",
    ),
    Lock(
        "endpoints of webhooks",
        "by id",
        "a call about one, and the subscriber of its deliveries' outcomes where the endpoint may change; deliveries "
        "that are written for endpoints that are not enabled share them (`FOR SHARE`); a submit that names a url waits "
        "for another one that creates the same endpoint",
        "webhooks",
        key="webhook_id",
    ),
    Lock(
        "deliveries",
        "by id",
        "written with their tasks; the subscriber of outcomes, before the tasks that it holds, releases or cancels; a "
        "worker that records a try locks nothing else",
        "deliveries",
        key="delivery_id",
    ),
    Lock(
        "projects",
        "by id",
        "each turn of a project, after its subject and before the run's task; a chunk of a bulk job takes several, "
        "before any task; ends, cancels, revivals and sweeps of the engine lock none and write to the outbox",
        "projects",
        key="project_id",
    ),
    Lock(
        "workflows",
        "by id",
        "whoever moves a task that one counts, before the task: ends, cancels, revivals, decisions, late tasks, and "
        "sweeps between choosing and locking; who comes to a dependent after other tasks tries (`SKIP LOCKED`), and "
        "else leaves it to the janitor, as who holds what waits of an escalated one does with a task that is not free",
        "workflows",
        key="workflow_id",
    ),
    Lock(
        "providers",
        "by name",
        "a claim where something guards them, an end that may change them or that asks for their next tasks, an "
        "operator's change, the settings that a process brings; who has made room in a concurrency key and locked "
        "tasks before tries (`SKIP LOCKED`), and else calls the janitor",
        "providers",
        key="name",
    ),
    Lock("actors", "by name", "the settings that a process brings, and nobody else", "actors", key="name"),
    Lock(
        "tasks",
        "by id",
        "whoever moves them or keeps a step, a child or a file of theirs (`FOR NO KEY UPDATE`, with a child also what "
        "it waits for), and a submit its parents (`FOR SHARE`), which it does not move; sweeps, renewals and reports "
        "skip what is locked; dependents are waited for if their ids are larger than all that is locked, else they are "
        "tried, and left to the janitor; whoever parks for a concurrency key, or lets go on, tries, and waits for no "
        "task afterwards",
        "tasks",
        key="task_id",
    ),
    Lock(
        "orders",
        "one",
        "each step of an order locks its task first; a callback locks the order alone, or, where it revives a task, "
        "after all that a revive locks",
        "generations",
        key="generation_id",
    ),
    Lock(
        "stories of workflows",
        "none",
        "appended under the workflow's lock; who says them in a log skips",
        "workflow_events",
        key="workflow_id",
    ),
    Lock(
        "results of providers", "none", "appended by ends; who forgets them skips", "provider_results", key="result_id"
    ),
    Lock(
        "histories of projects",
        "none",
        "appended under the project's lock",
        "project_events",
        key="seq",
    ),
    Lock(
        "the models of memory",
        "advisory, `windlass models`",
        "who gathers events shares it; who makes, activates or deletes a model has it alone, before it looks at any",
    ),
    Lock(
        "the indexes of vectors",
        "advisory, `windlass vector indexes`",
        "the janitor that makes and drops them, on a connection that locks nothing else; who finds it taken goes on",
    ),
    Lock(
        "what agents did",
        "by id",
        "written by the subscriber of memory; who gathers them skips; who deletes one goes on to its vectors",
        "agent_events",
        key="event_id",
    ),
    Lock(
        "models",
        "by id",
        "who fills in what was there before one skips; who changes them has the lock above",
        "embedding_models",
        key="model_id",
    ),
    Lock(
        "embedding jobs",
        "one",
        "the subscriber of memory, after the events that it writes; who splits one, after its task",
        "embedding_jobs",
    ),
    Lock(
        "due times of schedules",
        "none",
        "written under the schedule's lock, after what they start",
        "schedule_runs",
        key="due_at",
    ),
    Lock(
        "histories of schedules",
        "none",
        "appended under the schedule's lock",
        "schedule_events",
        key="seq",
    ),
    Lock("rate limiters", "advisory, by hash", "a counter's limiter, before the counter is looked at"),
    Lock("rate counters", "one", "under its limiter's lock; who forgets them skips", "rate_counters", key="key"),
    Lock("the tallies' mending", "one, `windlass tallies`", "`mend_tallies`: two at once would mend twice"),
    Lock("tallies", "as they were appended", "a fold deletes those that are there, then adds up", "task_tallies"),
    Lock("counts", "by user, provider and status", "a fold adds to them in this order", "task_counts"),
    Lock("the queue of notifications", "one, Postgres' own", "every commit with a NOTIFY: after it nobody waits"),
)
