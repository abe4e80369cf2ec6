"""The rows of `proof.md` about cost: which figures each is drawn from, and how they are told."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Row:
    """`told` has the numbers of `of`, each a part and a name as `docs.figures` finds it; its aims and whether they are
    reached are theirs."""

    words: str
    told: str
    of: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    because: str = ""
    """Said where an aim is not reached."""


def against_bare(processes: str, stages: str) -> Row:
    return Row(
        f"no-ops with every step durable, against bare Dramatiq, {processes} each at their best",
        "{ours.value}; bare Dramatiq {bare.tasks_per_second:,.0f} tasks/s; {cpu.total:.2f} ms of CPU a task",
        {
            "ours": ("engine", f"Windlass, every step durable, {processes},*"),
            "bare": ("engine", f"bare Dramatiq, no state, {processes},*"),
            "cpu": ("engine", stages),
        },
    )


def idle(name: str) -> tuple[str, str]:
    return "footprint", f"idle, {name}"


def memory(name: str) -> tuple[str, str]:
    return "footprint", f"memory, {name}"


ROWS = (
    against_bare("two processes", "CPU per task by stage, two processes"),
    against_bare("one process", "CPU per task by stage"),
    Row(
        "the same in the contest, and against the best durable peer there",
        "{ours.tasks_per_second:,.0f} against {bare.tasks_per_second:,.0f} tasks/s = {ratio.ratio:.2f} x; "
        "against {peers.most.tasks_per_second:,.0f} = {best.ratio:.1f} x",
        {
            "ours": ("contest", "*no-ops drained, Windlass (*"),
            "bare": ("contest", "*no-ops drained, bare Dramatiq (*"),
            "peers": ("contest", "*no-ops drained, [!Wb]*"),
            "ratio": ("contest", "Windlass against bare Dramatiq"),
            "best": ("contest", "Windlass against the best durable peer,*"),
        },
    ),
    Row(
        "from before the request to the first line of the task, idle, against bare Dramatiq's `send()` "
        "([0086](decisions/0086-rung-for-before-anybody-looks.md))",
        "{ours.p50_ms:.1f} against {bare.p50_ms:.1f} ms = {ours.ratio:.1f} x",
        {
            "ours": ("engine", "Windlass, from before the HTTP request*"),
            "bare": ("engine", "bare Dramatiq, from before send()*"),
        },
        "two calls of Postgres for which nothing is warm, and an HTTP request",
    ),
    Row(
        "one submit over HTTP against a bare Litestar handler that gathers commits as ours does",
        "{ours.per_second:,.0f} against {bare.per_second:,.0f} a second = {ours.ratio:.2f} x",
        {"ours": ("api", "POST /tasks"), "bare": ("api", "bare Litestar, one INSERT*")},
        "that one checks nothing, and writes one row where we write three",
    ),
    Row(
        "a batch of a thousand against single submits",
        "{batch.per_second:,.0f} tasks/s = {batch.ratio:.1f} x",
        {"batch": ("api", "POST /tasks/batch of 1000*")},
        "single ones share their commits, too",
    ),
    Row(
        "one `GET /tasks/{id}` against a bare handler with one SELECT",
        "{ours.ratio:.2f} x",
        {"ours": ("api", "GET /tasks/{id}")},
    ),
    Row(
        "CPU of a task at limit 3 ([0048](decisions/0048-what-a-narrow-limit-costs.md))",
        "{cpu.ms:.2f} ms",
        {"cpu": ("narrow", "CPU of a task at limit 3")},
        "an aim in milliseconds is one for a machine, and single calls are dear on this one",
    ),
    Row(
        "from a freed slot to its next holder, at limit 1",
        "{slot.hand_off_p50_ms:.1f} ms; the slot is held {slot.share:.1%} of the time",
        {"slot": ("narrow", "limit 1, * slot held")},
    ),
    Row(
        "a fresh task while 5,000 failing ones come again and again",
        "{storm.p50_ms:.1f} ms = {storm.ratio:.1f} x calm",
        {"storm": ("flow", "the same with 5000 failing tasks in retry*")},
    ),
    Row(
        "from SIGKILL of a worker to its task running again; of worker and guardian, both started again at once (the "
        "lease of 30 s where nobody is)",
        "{worker.seconds:.1f} s; {both.seconds:.1f} s",
        {
            "worker": ("engine", "SIGKILL of a worker to running again"),
            "both": ("engine", "SIGKILL of worker and guardian to running again"),
        },
    ),
    Row(
        "a task with 2,000,000 finished ones in history, against none",
        "CPU of Postgres {cpu.ratio:.2f} x, write-ahead log {wal.ratio:.2f} x, blocks {blocks.ratio:.2f} x",
        {
            "cpu": ("history", "a task, CPU of Postgres"),
            "wal": ("history", "a task, write-ahead log"),
            "blocks": ("history", "a task, blocks looked at"),
        },
    ),
    Row(
        "every kind of list page there, and `/queues/status`",
        "{pages.count} kinds and the status: {pages.least.ratio:.2f} to {pages.most.ratio:.2f} x, {status.ratio:.2f} x",
        {
            "pages": ("history", "page, *, CPU of Postgres"),
            "status": ("history", "/queues/status, CPU of Postgres"),
        },
    ),
    Row(
        "look, claim and end of three with 1,000,000 tasks queued, 400,000 scheduled and 200,000 blocked, against "
        "3,000 queued",
        "{path.ratio:.2f} x",
        {"path": ("backlog", "all four, of three, CPU of Postgres")},
    ),
    Row(
        "`/queues/status` there; what waits counted anew, once a second at most "
        "([0077](decisions/0077-what-lies-between-two-runs.md))",
        "{status.ms:.1f} ms; {anew.ms:.0f} ms",
        {
            "status": ("backlog", "GET /queues/status"),
            "anew": ("backlog", "at most once a second, what waits counted anew: everybody's"),
        },
    ),
    Row(
        "every `GET` there",
        "{reads.aimed.count} kinds that have an aim {reads.aimed.least.ms:.1f} to {reads.aimed.most.ms:.0f} ms; all "
        "{reads.count} up to {reads.most.ms:.0f} ms",
        {"reads": ("backlog", "GET /*")},
    ),
    Row(
        "a claim, and a look, under a snapshot that stays open for 200,000 tasks ([0049](decisions/0049-floors.md))",
        "{claim.ratio:.1f} and {look.ratio:.1f} x their first cost",
        {"claim": ("snapshot", "claim of 64,*"), "look": ("snapshot", "look of 64,*")},
    ),
    Row(
        "a thousand open streams, commit to client",
        "p50 {streams.p50_ms:.0f} ms, p99 {streams.p99_ms:.0f} ms, {streams.kilobytes_per_stream:.0f} KB a stream",
        {"streams": ("streams", "1,000 streams, commit to client")},
    ),
    Row(
        "queries of an idle process, in a second",
        "worker {worker.queries_per_second:.2f}, dispatcher {dispatcher.queries_per_second:.2f}, "
        "api {api.queries_per_second:.2f}, janitor {janitor.queries_per_second:.2f}, "
        "guardian {guardian.queries_per_second:.2f}",
        {name: idle(name) for name in ("worker", "dispatcher", "api", "janitor", "guardian")},
    ),
    Row(
        "what a no-op task leaves behind",
        "{kept.kept_bytes:,.0f} bytes with its events and indexes, {kept.wal_bytes:,.0f} of write-ahead log",
        {"kept": ("footprint", "bytes kept of a task that does nothing*")},
    ),
    Row(
        "memory",
        "worker {worker.idle_mb:.0f} MB, api {api.idle_mb:.0f}, dispatcher {dispatcher.idle_mb:.0f}, "
        "janitor {janitor.idle_mb:.0f} and its schedule {schedule.idle_mb:.0f}, guardian {guardian.idle_mb:.0f}",
        {name: memory(name) for name in ("worker", "api", "dispatcher", "janitor", "schedule", "guardian")},
    ),
    Row(
        "300 queues in one worker",
        "{drained.per_second:,.0f} tasks/s, {connections.number} connection",
        {
            "drained": ("queues", "3,000 no-ops over all queues"),
            "connections": ("queues", "connections of the worker to RabbitMQ"),
        },
    ),
    Row(
        "a parent with 10,000 dependents, from its turn to its end, to that of the last one; the same of one who dies, "
        "until the last is buried",
        "{turn.seconds:.2f} s, {last.seconds:.1f} s ({last.ratio:.2f} x as many plain ones); {death.seconds:.2f} s, "
        "{buried.seconds:.1f} s",
        {
            "turn": ("fan", "parent of 10,000, from its turn to its end"),
            "last": ("fan", "from its end to the end of the last dependent"),
            "death": ("fan", "parent of 10,000 that dies, from its turn to its end"),
            "buried": ("fan", "from its death until the last dependent is buried"),
        },
    ),
    Row(
        "a thousand at once in one process, on threads; killed with -9, until the first runs again, and from there to "
        "the last",
        "{cpu.worker_share:.1%} of a core for the worker, {cpu.postgres_share:.1%} for Postgres; "
        "{first.seconds:.1f} s, {last.seconds:.1f} s",
        {
            "cpu": ("many", "CPU while all run and report every 5 s"),
            "first": ("many", "from SIGKILL to the first that runs again"),
            "last": ("many", "from that one to the last"),
        },
    ),
    Row(
        "two thousand that wait, without a thread ([0079](decisions/0079-async-without-a-thread.md)); killed likewise",
        "{cpu.worker_share:.1%} of a core for the worker, {cpu.postgres_share:.1%} for Postgres; "
        "{first.seconds:.1f} s, {last.seconds:.1f} s",
        {
            "cpu": ("many", "without a thread: CPU while 2,000 wait"),
            "first": ("many", "without a thread: from SIGKILL to the first that runs again"),
            "last": ("many", "without a thread: from that one to the last"),
        },
    ),
    Row(
        "200 pictures whose jobs end together, until the last one's end is written "
        "([0083](decisions/0083-steps-of-orders-go-together.md))",
        "{ended.seconds:.1f} s",
        {"ended": ("many", "200 pictures that end together:*")},
    ),
    Row(
        "1,000 tasks as a fan-out and its join against as many plain ones, CPU "
        "([0085](decisions/0085-a-workflow-is-told-of-many-at-once.md))",
        "{edges.ratio:.2f} x by edges, {listed.ratio:.2f} x by `for_each`",
        {
            "edges": ("workflows", "the same as a fan-out and its join, by edges"),
            "listed": ("workflows", "the same as a fan-out and its join, by a list*"),
        },
    ),
    Row(
        "a page of workflows at 100,000 finished ones against 1,000",
        "{pages.count} kinds, {pages.least.ratio:.2f} to {pages.most.ratio:.2f} x",
        {"pages": ("workflows", "a page of workflows at 100,000 finished ones:*")},
    ),
    Row(
        "from the end of a project's run to the start of the next "
        "([0084](decisions/0084-the-short-way-to-the-next-run.md))",
        "{loop.p50_ms:.1f} ms = {loop.times:.2f} x a slot's hand-off",
        {"loop": ("projects", "from the end of a run to the start of the next*")},
    ),
    Row(
        "every kind of list page, 500,000 against 10,000 finished",
        "{pages.count} kinds, {pages.least.ratio:.2f} to {pages.most.ratio:.2f} x",
        {"pages": ("lists", "*")},
    ),
    Row(
        "the page: a list of 10,000 rows against 100, and 10 MB of output against 100 KB, longest task",
        "{rows.ratio:.2f} and {output.ratio:.2f} x",
        {"rows": ("page", "a list of 10,000 rows*"), "output": ("page", "10 MB of output*")},
    ),
    Row(
        "1,000 deliveries to ten endpoints, p99 of the other nine while one is dead, and while one is slow",
        "{dead.times:.2f} and {slow.times:.2f} x that of ten that are well ({well.p99_ms:.0f} ms)",
        {
            "well": ("webhooks", "1,000 deliveries to ten endpoints that are well*"),
            "dead": ("webhooks", "the same to the other nine while one is dead"),
            "slow": ("webhooks", "the same to the other nine while one is slow"),
        },
    ),
    Row(
        "10,000 schedules that are due at once",
        "all decided and begun within {begun.begun_seconds:.1f} s; a task of another provider waits "
        "{other.p99_ms:.0f} ms at p99",
        {
            "begun": ("schedules", "10,000 schedules that are due at once*"),
            "other": ("schedules", "what a task of another provider waits meanwhile"),
        },
    ),
    Row(
        "statements in 60 s with 1,000 idle projects, 1,000 idle endpoints, 10,000 idle schedules, and without them",
        "{projects.with} and {projects.without}, {endpoints.with} and {endpoints.without}, {schedules.with} and "
        "{schedules.without}",
        {
            "projects": ("projects", "statements in 60 s with*"),
            "endpoints": ("webhooks", "statements in 60 s with*"),
            "schedules": ("schedules", "statements in 60 s with*"),
        },
    ),
    Row(
        "a search in memory among 1,000 and 200,000 events",
        "{few.p50_ms:.0f} and {many.p50_ms:.0f} ms",
        {
            "few": ("memory", "a search among 1,000 events, by words*"),
            "many": ("memory", "a search among 200,000 events, by words*"),
        },
    ),
    Row(
        "the same by pgvector's index among 200,000",
        "{found.indexed_ms:.0f} ms, {found.compared_ms:.0f} where the newest 2,000 are compared; {found.recall:.0%} of "
        "the ten nearest found",
        {"found": ("memory", "a search among 200,000 events by pgvector's index")},
    ),
    Row(
        "CPU of an end that is remembered, against one that is not",
        "{end.times:.2f} x",
        {"end": ("memory", "Postgres' CPU of an end whose task is remembered*")},
    ),
)
