"""The order in which all transactions take locks, written once. Transactions that keep it never deadlock.

A transaction that has locked something waits only for locks further down, and within a line only for keys that sort
later. A lock that is needed out of order is taken only if it is free (`SKIP LOCKED`); otherwise the work is left to a
transaction that has locked nothing yet. `docs/lock_order.md` is drawn from this, and
`tests/integration/test_lock_order.py` runs every pair of moves at once.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Lock:
    """What is locked: rows of a table, by their key, or something else; the order within them; which calls lock it."""

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
        "a submit with keys takes them before any task, and waits a second at most; a revival, also in a chunk or by a "
        "callback, takes those of its own tasks, and skips those of dependents; the janitor skips locked ones when it "
        "deletes old keys",
        "submission_keys",
        key="user_id",
    ),
    Lock(
        "a bulk job",
        "one",
        "a chunk locks its job, then the tasks; no transaction locks two",
        "bulk_jobs",
        key="bulk_id",
    ),
    Lock(
        "a page left unsettled",
        "one",
        "`settle_next` takes the first that is free (`SKIP LOCKED`)",
        "unsettled",
        key="unsettled_id",
    ),
    Lock(
        "subjects of the outbox",
        "advisory, by hash of feature and subject",
        "an orchestrator takes those that are free; a read that catches up waits for them in order, and has locked "
        "nothing before except a bulk job. A schedule's turn takes those of its projects and workflows after the "
        "schedule's row, for which neither waits. The rows of the outbox are locked only when they are deleted",
        "outbox",
    ),
    Lock(
        "a worker's turn",
        "advisory, by its name",
        "a call that claims a worker's next tasks, also while it ends others, and a recall of an unanswered call: the "
        "calls of one worker run one after the other",
    ),
    Lock(
        "workers",
        "by id",
        "a recall locks its own; a renewal and a stall, which lock tasks next, skip a worker's row that is locked; a "
        "guardian's report about several waits for them by id",
        "workers",
        key="worker_id",
    ),
    Lock("keys", "one", "`revoke_key`, before the rows that its owner loses access to", "api_keys", key="key_id"),
    Lock(
        "schedules",
        "by id",
        "every change, every decision about a due time, and the handling of ends; an orchestrator that fires skips "
        "locked ones; ends of tasks, workflows and projects lock none and write to the outbox",
        "schedules",
        key="schedule_id",
    ),
    Lock(
        "global subscriptions",
        "one row",
        "a call that subscribes an endpoint to events, before the endpoint; the check that unsets a bit. Moves read it "
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
        "each turn of a workflow, after its subject; no call of the engine locks one. A schedule's turn that cancels "
        "takes it after the schedule's row",
        "workflows",
        key="workflow_id",
    ),
    Lock(
        "barriers",
        "none",
        "written under the lock of their workflow; the engine reads them without a lock",
        "barriers",
        key="barrier_id",
    ),
    Lock(
        "task groups",
        "by id",
        "shared (`FOR SHARE`) by a submit of tasks that join one, and by a revival, before any task; a revival of "
        "dependents skips a group that is locked, and leaves them to the janitor. A workflow's cancel closes its group "
        "(`FOR NO KEY UPDATE`) before it locks a task. The claim reads groups without a lock, after the tasks' locks",
        "task_groups",
        key="group_id",
    ),
    Lock(
        "providers",
        "by name",
        "a claim, if the provider has a limit, a rate, a pause or a breaker that is not closed; an end that may change "
        "them or that claims their next tasks; an operator's change; the settings of a process that starts. A call "
        "that has locked tasks and made room in a concurrency key tries (`SKIP LOCKED`), or calls the janitor",
        "providers",
        key="name",
    ),
    Lock("actors", "by name", "the settings of a process that starts", "actors", key="name"),
    Lock(
        "tasks",
        "by id",
        "every move, and a call that keeps a step, a child or a file of a task (`FOR NO KEY UPDATE`, with a child also "
        "its parents); a submit locks its parents (`FOR SHARE`), which it does not move; sweeps, renewals and reports "
        "skip locked ones. Dependents are waited for if their ids are larger than all locked ones; otherwise they are "
        "tried, and left to the janitor. A call that parks or releases tasks of a concurrency key tries, and waits for "
        "no task afterwards",
        "tasks",
        key="task_id",
    ),
    Lock(
        "orders",
        "one",
        "each step of an order locks its task first; a callback locks only the order, or, if it revives a task, the "
        "order after everything that a revival locks",
        "generations",
        key="generation_id",
    ),
    Lock(
        "failures of groups",
        "none",
        "appended by the transaction that buries the task; a workflow's resume deletes those that it forgives",
        "group_failures",
        key="group_id",
    ),
    Lock(
        "histories of workflows",
        "none",
        "appended under the workflow's lock",
        "workflow_events",
        key="workflow_id",
    ),
    Lock(
        "results of providers",
        "none",
        "appended by ends; the janitor skips locked ones",
        "provider_results",
        key="result_id",
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
        "gathering of events shares it; a call that makes, activates or deletes a model has it alone, before it reads "
        "any",
    ),
    Lock(
        "the indexes of vectors",
        "advisory, `windlass vector indexes`",
        "the janitor that makes and drops them, on a connection that locks nothing else; another janitor continues "
        "without it",
    ),
    Lock(
        "what agents did",
        "by id",
        "written by the subscriber of memory; gathering skips locked ones; a deletion continues with the vectors",
        "agent_events",
        key="event_id",
    ),
    Lock(
        "models",
        "by id",
        "filling a new model with older events skips locked ones; a change of a model has the lock above",
        "embedding_models",
        key="model_id",
    ),
    Lock(
        "embedding jobs",
        "one",
        "the subscriber of memory, after the events that it writes; a split of a job, after its task",
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
    Lock("the check of the tallies", "one, `windlass tallies`", "`mend_tallies`: two at once would correct twice"),
    Lock("tallies", "as they were appended", "a fold deletes those that are there, then adds up", "task_tallies"),
    Lock("counts", "by user, provider and status", "a fold adds to them in this order", "task_counts"),
    Lock("the queue of notifications", "one, Postgres' own", "every commit with a NOTIFY: no lock is taken after it"),
)
