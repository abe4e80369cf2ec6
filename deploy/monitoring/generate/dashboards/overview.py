"""The first page in the night: is anything wrong, do we keep what we promise, does work flow."""

from deploy.monitoring.generate.expressions import at_times, of_the_cluster, per_second, quantile
from deploy.monitoring.generate.grafana import Dashboard, Row
from deploy.monitoring.generate.objectives import API, OBJECTIVES, STARTS, SUCCESS, Objective
from deploy.monitoring.generate.panels import GREEN, RED, YELLOW, Panel, Query, a_second, graph, stat, table

FIRING = 'ALERTS{alertname=~"Windlass.*",alertstate="firing"}'
AWAY = ("away", RED)


def dashboard() -> Dashboard:
    return Dashboard(
        "overview",
        "Overview",
        "Start here. From top to bottom: is anything wrong, do we keep what we promise, does work flow, what does it "
        "cost. The links above lead to the causes.",
        [
            Row("Is anything wrong?", wrong()),
            Row("Do we keep what we promise?", promises()),
            Row("Does work flow?", flow()),
            Row("Projects", projects()),
            Row("Workflows", workflows()),
            Row("Schedules", schedules()),
            Row("Webhooks", webhooks()),
            Row("Memory", memory()),
            Row("What does it cost?", cost()),
        ],
    )


def wrong() -> list[Panel]:
    return [
        stat(
            "Alerts that fire",
            "Good: 0. Otherwise the table below names them, and each has a page in deploy/monitoring/runbooks.",
            f"count({FIRING}) or vector(0)",
            steps=[(1, RED)],
        ),
        stat(
            "Postgres",
            "Good: answers. Full: it answers, and stores nothing, for its disk is full or it is read-only. Away: tasks "
            "are neither accepted nor started; nothing is lost. Mend Postgres first, all the rest of this page is "
            "known through it.",
            f"{of_the_cluster('windlass_database_answers')} "
            f"+ ({of_the_cluster('windlass_database_writable')} or vector(0))",
            words={"2": ("answers", GREEN), "1": ("full", RED), "0": AWAY},
        ),
        stat(
            "RabbitMQ",
            "Good: connected, as the best placed dispatcher sees it. Blocked (short of memory or disk) or away: tasks "
            "are accepted and wait; what runs runs on.",
            "max(windlass_broker_connected) + (max(windlass_broker_blocked) or vector(0))",
            words={"1": ("connected", GREEN), "2": ("blocked", RED), "0": AWAY},
        ),
        stat(
            "Unaccounted tasks",
            "Good: 0, always. More are tasks that no part of the system is going to move: follow the runbook of "
            "WindlassUnaccountedTasks.",
            of_the_cluster("windlass_unaccounted_tasks"),
            steps=[(1, RED)],
        ),
        stat(
            "Oldest move in the outbox",
            "Good: below a second. More: no orchestrator runs, or a feature fails; see the runbook of "
            "WindlassOutboxBehind.",
            "max(windlass_outbox_oldest_seconds)",
            unit="s",
            decimals=0,
            steps=[(10, YELLOW), (60, RED)],
        ),
        stat(
            "Janitor's last look",
            "Good: below half a minute. It takes back the tasks of dead workers; silent, those stay `running`.",
            'time() - max(windlass_janitor_last_success_timestamp_seconds{duty="stale"})',
            unit="s",
            decimals=0,
            steps=[(60, YELLOW), (120, RED)],
        ),
        stat(
            "Workers",
            "How many worker processes are scraped. With pools that scale to zero, none is fine while nothing waits.",
            "count(windlass_worker_heartbeat_age_seconds) or vector(0)",
        ),
        table(
            "What fires",
            "Empty is good. Pages come first to mind, tickets can wait for the morning.",
            f"sort_desc(sum by (alertname, severity, queue, provider, actor, objective, instance) ({FIRING}))",
            width=24,
        ),
    ]


def promises() -> list[Panel]:
    burn = [Query(f"{each.recorded('1h')} / {each.budget:g}", each.promise) for each in OBJECTIVES]
    return [
        kept(API, "Requests answered without a 5xx in the last hour."),
        kept(STARTS, "First attempts that started within a minute of being due, in the last hour."),
        kept(SUCCESS, "Tasks that completed, of those that did not fail by their user's own fault, in the last hour."),
        graph(
            "How fast the budget burns",
            "1 uses up the whole allowance of failures in 30 days. Good: below 1. From 6 on for hours, or 14.4 for an "
            "hour, somebody is paged. No line: nothing was asked for.",
            *burn,
            width=24,
            height=7,
            steps=[(1, YELLOW), (6, RED)],
        ),
    ]


def kept(objective: Objective, what: str) -> Panel:
    return stat(
        objective.promise,
        f"{what} Promised: {1 - objective.budget:.1%}. No data: nothing was asked for. Below the promise, look at "
        f"the runbook of {objective.alert}.",
        f"1 - {objective.recorded('1h')}",
        unit="percentunit",
        decimals=2,
        width=8,
        steps=[(0, RED), (1 - 3 * objective.budget, YELLOW), (1 - objective.budget, GREEN)],
    )


def flow() -> list[Panel]:
    finished = per_second("windlass_tasks_finished_total", "outcome")
    return [
        graph(
            "Submitted and finished",
            "Good: what is finished keeps up with what is submitted. Falls finished behind, look at what waits, then "
            "at the providers. Many dead: see errors below and `windlass dlq --group`.",
            Query(per_second("windlass_tasks_submitted_total"), "submitted"),
            Query(finished, "{{outcome}}"),
            unit=a_second("tasks"),
        ),
        graph(
            "Waiting, by queue",
            "Tasks that could start now. A hill that comes down again is fine; one that only grows needs more slots, "
            "more workers, or a provider that is well: click at the line to open that queue.",
            Query(f"sum by (queue) ({of_the_cluster('windlass_queue_depth', 'queue, lane')})", "{{queue}}"),
            stacked=True,
            leads_to="queue",
        ),
        graph(
            "Running, by provider",
            "Slots in use. Flat at the limit: the provider is the bottleneck. Far below it while tasks wait: look at "
            "workers, pauses and breakers.",
            Query(of_the_cluster("windlass_provider_slots_held", "provider"), "{{provider}}"),
            stacked=True,
            leads_to="provider",
        ),
        graph(
            "Oldest waiting task, by queue",
            "How long the first in line has waited. Good: below a minute where there is no backlog. From 15 minutes on "
            "there is a ticket, from an hour on a page.",
            Query(of_the_cluster("windlass_queue_oldest_seconds", "queue"), "{{queue}}"),
            unit="s",
            steps=[(900, YELLOW), (3600, RED)],
            leads_to="queue",
        ),
        graph(
            "From submit to result, 95 %",
            "What users feel, by actor: waiting, retries and dependencies included.",
            Query(quantile(0.95, "windlass_task_end_to_end_seconds", "actor"), "{{actor}}"),
            unit="s",
        ),
        graph(
            "Errors of attempts, by type",
            "Good: few, and those retried. One type that stands out names its cause; the providers' dashboard says "
            "whose it is.",
            Query(at_times("windlass_attempt_errors_total", "error_type"), "{{error_type}}"),
            unit=a_second("errors"),
            stacked=True,
        ),
    ]


def projects() -> list[Panel]:
    return [
        graph(
            "Queues that run or stop",
            "One open run each. `stopping` for long: somebody asked for the end of a long run, or a force-stop waits "
            "for its proof.",
            Query(of_the_cluster("windlass_project_queues", "state"), "{{state}}"),
            stacked=True,
            width=8,
        ),
        graph(
            "Longest stop",
            "How long ago the queue that has been stopping longest was asked to. By force it takes seconds: from ten "
            "minutes on, see the runbook of WindlassProjectStopping.",
            Query(of_the_cluster("windlass_project_stopping_seconds", "by"), "by {{by}}"),
            unit="s",
            width=8,
        ),
        graph(
            "Projects that nobody moves",
            "Good: 0, always. Otherwise follow the runbook of WindlassProjectOrphans.",
            Query(of_the_cluster("windlass_project_orphans"), "orphans"),
            steps=[(1, RED)],
            width=8,
        ),
        graph(
            "Runs, by how they ended",
            "`dead` ends a loop, unless its project goes on after failures; `withdrawn` were stopped before they "
            "began; `lost` is seen after a restore alone.",
            Query(at_times("windlass_project_runs_total", "end"), "{{end}}"),
            unit=a_second("runs"),
            stacked=True,
            width=8,
        ),
        graph(
            "Time of a run",
            "From its start to its end, with all its retries.",
            Query(quantile(0.5, "windlass_project_run_seconds"), "half"),
            Query(quantile(0.95, "windlass_project_run_seconds"), "95 %"),
            unit="s",
            width=8,
        ),
        graph(
            "Queues that came to a stand, by reason",
            "`finished`: nothing waits. `failed`: a run died. `stopped` and `forced`: somebody asked for it.",
            Query(at_times("windlass_project_stops_total", "reason"), "{{reason}}"),
            unit=a_second("queues"),
            stacked=True,
            width=8,
        ),
    ]


def workflows() -> list[Panel]:
    return [
        graph(
            "Escalated workflows",
            "Good: 0. Each waits for somebody to resume or cancel it: see the runbook of WindlassWorkflowsEscalated.",
            Query(of_the_cluster("windlass_escalated_workflows"), "escalated"),
            steps=[(1, RED)],
            width=8,
        ),
        graph(
            "Longest wait for a person's word",
            "How long ago the task was asked about that has waited longest; 0 when none waits. No worker waits with "
            "it. From a day on, see the runbook of WindlassApprovalsOld.",
            Query(of_the_cluster("windlass_oldest_approval_seconds"), "oldest"),
            unit="s",
            width=8,
        ),
        graph(
            "Workflows with wrong counts",
            "Good: 0, always. Otherwise follow the runbook of WindlassWorkflowDrift.",
            Query(of_the_cluster("windlass_workflow_drift"), "drift"),
            steps=[(1, RED)],
            width=8,
        ),
    ]


def schedules() -> list[Panel]:
    return [
        graph(
            "Due times of schedules, by outcome",
            "`started`, `skipped` while the last one lived, `missed`, `refused`; one that is `waiting` becomes another "
            "later.",
            Query(at_times("windlass_schedule_runs_total", "outcome"), "{{outcome}}"),
            unit=a_second("due times"),
            stacked=True,
            width=8,
        ),
        graph(
            "Latest due time",
            "How late what is due is at this moment. Good: moments. From a minute on, see the runbook of "
            "WindlassSchedulesLate.",
            Query(of_the_cluster("windlass_schedule_overdue_seconds"), "overdue"),
            unit="s",
            steps=[(60, RED)],
            width=8,
        ),
        graph(
            "Paused schedules, by reason",
            "`asked-for`: somebody wished it. The others: see the runbook of WindlassSchedulesHalted.",
            Query(of_the_cluster('windlass_schedules{state="paused"}', "reason"), "{{reason}}"),
            width=8,
        ),
        graph(
            "How late due times were started, 95 %",
            "Good: moments. `kind` says what was started.",
            Query(quantile(0.95, "windlass_schedule_late_seconds", "kind"), "{{kind}}"),
            unit="s",
        ),
        graph(
            "Starts of schedules that came to nothing",
            "Refused, or ended dead or failed; `windlass schedules` lists them. Good: 0. With "
            "`pause_after_failures` so many in a row pause a schedule.",
            Query(at_times("windlass_schedule_failures_total", ""), "failures"),
            unit=a_second("starts"),
        ),
    ]


def webhooks() -> list[Panel]:
    return [
        graph(
            "Webhooks that are not well",
            "Good: 0. A failing one has its deliveries held, but for the oldest, which tries; after five days it is "
            "disabled: see the runbooks of WindlassWebhookFailing and WindlassWebhookDisabled.",
            Query('max by (state) (windlass_webhooks{state="failing"})', "{{state}}"),
            Query(of_the_cluster("windlass_given_up_webhooks"), "disabled by failure"),
            width=8,
        ),
        graph(
            "Deliveries that wait, by their webhooks' state",
            "At enabled ones they wait for their next try; at the others they are held until somebody mends the "
            "receiver. Nothing of it is lost.",
            Query(of_the_cluster("windlass_webhook_waiting_deliveries", "state"), "{{state}}"),
            stacked=True,
            width=8,
        ),
        graph(
            "Tries, by outcome",
            "`refused` is any answer but 2xx; `forbidden` an address that is not spoken to, which is worth a look: "
            "somebody tried to reach into the cluster.",
            Query(at_times("windlass_webhook_tries_total", "outcome"), "{{outcome}}"),
            unit=a_second("tries"),
            stacked=True,
            width=8,
        ),
        graph(
            "How long endpoints take, 95 %",
            "By outcome. Good: well below 15 s, which is all that an endpoint has.",
            Query(quantile(0.95, "windlass_webhook_try_seconds", "outcome"), "{{outcome}}"),
            unit="s",
            steps=[(10, YELLOW)],
        ),
    ]


def memory() -> list[Panel]:
    return [
        graph(
            "Moves that features have yet to handle",
            "By feature. Good: near 0. More: no orchestrator runs, or the feature fails; see the runbook of "
            "WindlassOutboxBehind.",
            Query("max by (feature) (windlass_outbox_rows)", "{{feature}}"),
        ),
        graph(
            "Moves handled by features",
            "Each second. Good: no `failed`. A failed subject is tried again later.",
            Query(per_second("windlass_outbox_handled_total", "feature"), "{{feature}} handled"),
            Query(per_second("windlass_outbox_failed_total", "feature"), "{{feature}} failed"),
            unit=a_second("moves"),
        ),
        graph(
            "Embedding jobs",
            "Up to 64 events each. Good: none failed, and what waits goes down again. Failed ones stay until somebody "
            "retries them: see the runbook of WindlassEmbeddingFailed.",
            Query("max by (state) (windlass_embedding_jobs)", "{{state}}"),
            width=8,
        ),
        graph(
            "Oldest event that cannot be found yet",
            "Good: seconds. More: the janitor does not gather; see the runbook of WindlassMemoryBehind.",
            Query(of_the_cluster("windlass_memory_ungathered_seconds"), "oldest"),
            unit="s",
            width=8,
        ),
        graph(
            "Questions to memory",
            "Each second. Good: `fused`. `text` are those that got no vector in time: see the runbook of "
            "WindlassMemoryDegraded.",
            Query(per_second("windlass_memory_searches_total", "by"), "{{by}}"),
            unit=a_second("questions"),
            stacked=True,
            width=8,
        ),
    ]


def cost() -> list[Panel]:
    hourly = per_second("windlass_provider_cost_usd_total", "provider")
    return [
        graph(
            "Cost per hour, by provider",
            "What providers said that their work cost, at the present pace. A jump without more submitted tasks: look "
            "at retries.",
            Query(f"3600 * ({hourly})", "{{provider}}"),
            unit="currencyUSD",
            leads_to="provider",
        ),
        graph(
            "Tokens per second",
            "Prompt and completion tokens that providers counted.",
            Query(per_second("windlass_provider_tokens_total", "provider, direction"), "{{provider}} {{direction}}"),
        ),
    ]
