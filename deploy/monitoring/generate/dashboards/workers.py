"""Who carries the work: enough of them, alive, and what the dispatcher and the janitor do around them."""

from deploy.monitoring.generate.dashboards.processes import processes
from deploy.monitoring.generate.expressions import at_times, mean, of_the_cluster, per_second, quantile
from deploy.monitoring.generate.grafana import Dashboard, Row
from deploy.monitoring.generate.panels import RED, YELLOW, Panel, Query, a_second, graph

NOT_THE_API = 'unless on (instance) windlass_build_info{service="api"}'


def dashboard() -> Dashboard:
    return Dashboard(
        "workers",
        "Workers",
        "Are there enough workers, do they live, and do dispatcher and janitor do their part. `windlass workers` "
        "lists them.",
        [
            Row("Are there enough?", enough()),
            Row("Do they live?", alive()),
            Row("Do they get their work, and write it down?", work()),
            Row("Own actors", own_actors()),
            Row("Does the janitor do its duties?", janitor()),
            Row("What do the processes take?", processes(NOT_THE_API)),
        ],
    )


def enough() -> list[Panel]:
    busy = 'sum by (instance, kind) (windlass_worker_places{state="busy"})'
    there = "(sum by (instance, kind) (windlass_worker_places) > 0)"
    return [
        graph(
            "Places, by kind",
            "Busy and idle, over all workers: threads, and for `async def` actors the loop. No idle ones of the kind "
            "that tasks wait for, and no limit is reached: add workers.",
            Query("sum by (kind, state) (windlass_worker_places)", "{{kind}} {{state}}"),
            stacked=True,
            width=8,
        ),
        graph(
            "How busy each worker is",
            "By kind of places. Good: below 90 %, or at it while the queue gets shorter.",
            Query(f"{busy} / {there}", "{{instance}} {{kind}}"),
            unit="percentunit",
            most=1,
            width=8,
        ),
        graph(
            "Places that serve each queue",
            "0 for a queue with waiting tasks: its pool does not run. See WindlassNoWorker.",
            Query(of_the_cluster("windlass_queue_capacity", "queue"), "{{queue}}"),
            width=8,
            leads_to="queue",
        ),
    ]


def alive() -> list[Panel]:
    return [
        graph(
            "Since the last heartbeat",
            "Good: below 10 s. Near 30 s a worker stops its own work, and its guardian replaces it.",
            Query("windlass_worker_heartbeat_age_seconds", "{{instance}}"),
            unit="s",
            steps=[(15, YELLOW), (30, RED)],
        ),
        graph(
            "Oldest lease, by provider",
            "How long ago the running task that was renewed longest ago was renewed. Past 30 s it is taken back.",
            Query(of_the_cluster("windlass_lease_age_seconds", "provider"), "{{provider}}"),
            unit="s",
            steps=[(20, YELLOW), (30, RED)],
        ),
        graph(
            "Taken back and handed back",
            "Stalls: a worker died, froze or was cut off. Interrupted: it was told to stop, as in a rollout. Both go "
            "on elsewhere; often means that workers do not live long enough.",
            Query(at_times("windlass_stalls_total", "provider"), "{{provider}} stalled"),
            Query(
                at_times('windlass_attempts_finished_total{outcome="interrupted"}', "provider"),
                "{{provider}} interrupted",
            ),
            unit=a_second("attempts"),
            width=8,
        ),
        graph(
            "Workers lost",
            "Without a good-bye. Good: 0. Look at memory, at evictions and at the node.",
            Query(at_times("windlass_workers_lost_total", ""), "lost"),
            unit=a_second("workers"),
            width=8,
        ),
        graph(
            "Agents that were ended, by reason",
            "`cancelled` and `stopped` are wishes. `memory`, `cpu` and `processes` are limits: see the agent's "
            "table in the configuration.",
            Query(at_times("windlass_agent_kills_total", "reason"), "{{reason}}"),
            unit=a_second("agents"),
            width=8,
        ),
    ]


def work() -> list[Panel]:
    return [
        graph(
            "Attempts started",
            "By provider. 0 while tasks wait: the dashboard of the queue says why.",
            Query(per_second("windlass_attempts_started_total", "provider"), "{{provider}}"),
            unit=a_second("attempts"),
            width=8,
        ),
        graph(
            "Starts that were refused, by reason",
            "Of tasks that must run alone. What else does not start says why itself (`windlass why`).",
            Query(at_times("windlass_claims_refused_total", "reason"), "{{reason}}"),
            unit=a_second("refusals"),
            width=8,
        ),
        graph(
            "Written at once",
            "Claims, reports and ends in one transaction, on average. Larger under load is good: it is how one process "
            "keeps up.",
            Query(mean("windlass_write_batch_size", "what"), "{{what}}"),
            width=8,
        ),
        graph(
            "Doorbells, by result",
            "Good: confirmed. `missed`: RabbitMQ did not confirm, the tasks are rung for again.",
            Query(per_second("windlass_doorbells_total", "result"), "{{result}}"),
            unit=a_second("doorbells"),
            width=8,
        ),
        graph(
            "Doorbells in one batch",
            "How many tasks the dispatcher rings for at once, on average.",
            Query(mean("windlass_dispatch_batch_size"), "tasks"),
            width=8,
        ),
        graph(
            "How long RabbitMQ takes to confirm",
            "Good: well below a second. Slow: its disk, or a node of the cluster that is away.",
            Query(quantile(0.5, "windlass_dispatch_confirm_seconds"), "half"),
            Query(quantile(0.95, "windlass_dispatch_confirm_seconds"), "95 %"),
            unit="s",
            steps=[(1, YELLOW)],
            width=8,
        ),
    ]


def own_actors() -> list[Panel]:
    return [
        graph(
            "Versions of each actor that run",
            "Good: 1, and 2 while a new version is rolled out; 0 where a pool is at none. 2 for long: workers of "
            "before were left behind, and only what both versions take is accepted.",
            Query(of_the_cluster("windlass_actor_versions", "actor"), "{{actor}}"),
        ),
        graph(
            "Workers that cannot serve a queue",
            "Good: 0. The actor's code cannot be loaded there: `windlass doctor` has the sentence that says why.",
            Query("sum by (queue) (windlass_queue_broken)", "{{queue}}"),
            leads_to="queue",
        ),
        graph(
            "Durable steps",
            "`run` are steps whose result was kept, `given_back` those that a later attempt did not have to run again: "
            "many of them mean that attempts often do not come to their end.",
            Query(per_second("windlass_steps_total", "result"), "{{result}}"),
            unit=a_second("steps"),
        ),
        graph(
            "Left to another version",
            "Tasks whose payload the version that claimed them refuses, and another takes: handed back, free. Good: 0, "
            "but for a rollout that changes what an actor takes.",
            Query(per_second("windlass_tasks_for_another_version_total", "actor"), "{{actor}}"),
            unit=a_second("tasks"),
        ),
    ]


def janitor() -> list[Panel]:
    return [
        graph(
            "Since each duty was last done",
            "Good: stale, expired, dependents, keys and bulk below 20 s, most others about a minute, statistics and "
            "tallies_check up to an hour.",
            Query("time() - max by (duty) (windlass_janitor_last_success_timestamp_seconds)", "{{duty}}"),
            unit="s",
        ),
        graph(
            "How long duties take, 95 %",
            "Seconds and growing: Postgres is slow, or its statistics are stale (ANALYZE).",
            Query(quantile(0.95, "windlass_janitor_duty_seconds", "duty"), "{{duty}}"),
            unit="s",
        ),
        graph(
            "Duties that failed, an hour",
            "Good: 0. The janitor's log has the error; the other duties go on.",
            Query("sum by (duty) (increase(windlass_janitor_duty_failures_total[1h]))", "{{duty}}"),
        ),
    ]
