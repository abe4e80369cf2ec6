"""The first page in the night: is anything wrong, do we keep what we promise, does work flow."""

from deploy.monitoring.generate.expressions import at_times, of_the_cluster, per_second, quantile
from deploy.monitoring.generate.grafana import Dashboard, Row
from deploy.monitoring.generate.objectives import API, OBJECTIVES, STARTS, SUCCESS, Objective
from deploy.monitoring.generate.panels import GREEN, RED, YELLOW, Panel, Query, graph, stat, table

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
            "Untold moves",
            "Good: 0. More are moves of tasks that could not be told to whom they concern: follow the runbook of "
            "WindlassUntoldMoves.",
            of_the_cluster("windlass_untold_moves"),
            steps=[(1, RED)],
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
            unit="reqps",
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
            unit="reqps",
            stacked=True,
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
