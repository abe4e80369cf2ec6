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
        "workers",
        "by id",
        "a renewal and a stall go on to tasks, and skip a worker's row that is locked; a guardian's word about several "
        "waits for them by id",
        "workers",
        key="worker_id",
    ),
    Lock("schedules", "by id", "nobody yet"),
    Lock("projects", "by id", "nobody yet: a sweep locks them between choosing its tasks and locking these"),
    Lock("workflows", "by id", "nobody yet: as projects"),
    Lock(
        "providers",
        "by name",
        "a claim where something guards them, an end that may change them, a reservation, an operator's change, "
        "the settings that a process brings; who has made room in a concurrency key and locked tasks before tries "
        "(`SKIP LOCKED`), and else calls the janitor",
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
        "results of providers", "none", "appended by ends; who forgets them skips", "provider_results", key="result_id"
    ),
    Lock("rate limiters", "advisory, by hash", "a counter's limiter, before the counter is looked at"),
    Lock("rate counters", "one", "under its limiter's lock; who forgets them skips", "rate_counters", key="key"),
    Lock("the tallies' mending", "one, `windlass tallies`", "`mend_tallies`: two at once would mend twice"),
    Lock("tallies", "as they were appended", "a fold deletes those that are there, then adds up", "task_tallies"),
    Lock("counts", "by user, provider and status", "a fold adds to them in this order", "task_counts"),
    Lock("the queue of notifications", "one, Postgres' own", "every commit with a NOTIFY: after it nobody waits"),
)
