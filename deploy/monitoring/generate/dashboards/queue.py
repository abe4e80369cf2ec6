"""One queue: does it move, if not why not, and what becomes of its tasks."""

from deploy.monitoring.generate.expressions import at_times, of_the_cluster, per_second, quantile
from deploy.monitoring.generate.grafana import Dashboard, Row, Variable
from deploy.monitoring.generate.panels import BLUE, GREEN, RED, YELLOW, Panel, Query, a_second, graph, stat

QUEUE = 'queue="$queue"'
KIND = 'actor="$its_actor",provider="$its_provider"'
PROVIDER = 'provider="$its_provider"'
BREAKER = (
    f'max(windlass_provider_breaker_state{{{PROVIDER},state="half_open"}}) '
    f'+ 2 * max(windlass_provider_breaker_state{{{PROVIDER},state="open"}})'
)


def dashboard() -> Dashboard:
    known = "label_values(windlass_queue_depth{" + QUEUE + "}, "
    return Dashboard(
        "queue",
        "A queue",
        "One queue, chosen above. `windlass why TASK` says about a single task what this page says about all of them.",
        [
            Row("Does it move?", moves()),
            Row("If not, why?", why()),
            Row("What becomes of its tasks?", tasks()),
            Row("Doorbells", doorbells()),
        ],
        [
            Variable("queue", "Queue", "label_values(windlass_queue_depth, queue)"),
            Variable("its_actor", "Actor", known + "actor)", hidden=True),
            Variable("its_provider", "Provider", known + "provider)", hidden=True),
        ],
    )


def moves() -> list[Panel]:
    return [
        stat(
            "Could start now",
            "Tasks that are due. Good: few, or falling.",
            f"sum({of_the_cluster(f'windlass_queue_depth{{{QUEUE}}}', 'lane')})",
        ),
        stat(
            "Oldest",
            "How long the first of them has waited. Ticket from 15 minutes on, page from an hour on.",
            of_the_cluster(f"windlass_queue_oldest_seconds{{{QUEUE}}}"),
            unit="s",
            decimals=0,
            steps=[(900, YELLOW), (3600, RED)],
        ),
        stat(
            "Running",
            "Tasks of this queue that a worker has.",
            f'max(windlass_tasks{{{KIND},status="running"}}) or vector(0)',
        ),
        stat(
            "For later",
            "Tasks that wait for their time: delayed on purpose, or until their next attempt.",
            of_the_cluster(f"windlass_queue_scheduled{{{QUEUE}}}"),
        ),
        stat(
            "Workers",
            "Who serves this queue. 0 while tasks could start is wrong, unless the provider is paused.",
            of_the_cluster(f"windlass_queue_workers{{{QUEUE}}}"),
        ),
        stat(
            "Dead",
            "All that are in the dead letter queue, since the first day: `windlass dlq --group` says of what they "
            "died.",
            f'max(windlass_tasks{{{KIND},status="dead"}}) or vector(0)',
        ),
        graph(
            "Waiting, by lane",
            "`retry` are tasks that failed before. They get 30 of 100 starts, and less when there are thousands, so "
            "that new work goes on.",
            Query(of_the_cluster(f"windlass_queue_depth{{{QUEUE}}}", "lane"), "{{lane}}"),
            stacked=True,
        ),
        graph(
            "Oldest waiting task",
            "A saw-tooth is good: the first in line starts and the next is younger. A straight line upwards: nothing "
            "starts.",
            Query(of_the_cluster(f"windlass_queue_oldest_seconds{{{QUEUE}}}"), "oldest"),
            unit="s",
            steps=[(900, YELLOW), (3600, RED)],
        ),
    ]


def why() -> list[Panel]:
    paused = f"max(windlass_provider_paused{{{PROVIDER}}}) or vector(0)"
    return [
        stat(
            "Breaker",
            "Open: the provider failed too often, nothing is started. It tries again by itself every minute.",
            BREAKER,
            words={"0": ("closed", GREEN), "1": ("half open", YELLOW), "2": ("open", RED)},
            width=6,
        ),
        stat(
            "Pause",
            "Paused by an operator, or because the provider asked us to wait: `windlass providers show NAME` says "
            "which.",
            paused,
            words={"0": ("none", GREEN), "1": ("paused", BLUE)},
            width=6,
        ),
        stat(
            "Slots in use",
            "Of the provider, by all its queues.",
            of_the_cluster(f"windlass_provider_slots_held{{{PROVIDER}}}"),
            width=6,
        ),
        stat(
            "Limit",
            "How many slots the provider has; none means no limit. In use = limit: tasks wait for each other.",
            f"{of_the_cluster(f'windlass_provider_slots_limit{{{PROVIDER}}}')} or vector(-1)",
            words={"-1": ("none", GREEN)},
            width=6,
        ),
        graph(
            "Slots, limit and places",
            "What is lowest is the bottleneck: the limit (the provider), or the places of the workers (more pods).",
            Query(of_the_cluster(f"windlass_provider_slots_held{{{PROVIDER}}}"), "slots in use"),
            Query(of_the_cluster(f"windlass_provider_slots_limit{{{PROVIDER}}}"), "limit"),
            Query(of_the_cluster(f"windlass_queue_capacity{{{QUEUE}}}"), "places of its workers"),
        ),
        graph(
            "Starts that were refused, by reason",
            "Of tasks that must run alone. What else does not start says why itself (`windlass why`).",
            Query(at_times(f"windlass_claims_refused_total{{{QUEUE}}}", "reason"), "{{reason}}"),
            unit=a_second("refusals"),
        ),
    ]


def tasks() -> list[Panel]:
    wait, run = f'windlass_task_queue_wait_seconds{{{KIND},attempt="first"}}', f"windlass_task_run_seconds{{{KIND}}}"
    end_to_end = f"windlass_task_end_to_end_seconds{{{KIND}}}"
    return [
        graph(
            "Submitted and finished",
            "Good: the lines go together. `dead` waits for a person, `revived` by one.",
            Query(f"{per_second(f'windlass_tasks_submitted_total{{{KIND}}}')} or vector(0)", "submitted"),
            Query(per_second(f"windlass_tasks_finished_total{{{KIND}}}", "outcome"), "{{outcome}}"),
            Query(at_times(f"windlass_tasks_revived_total{{{KIND}}}", ""), "revived"),
            unit=a_second("tasks"),
        ),
        graph(
            "Whose fault the dead are",
            "`user`: the input; nothing for us to do. `provider`: see its dashboard. `system`: a bug or a lost "
            "worker; read `windlass dlq --group`.",
            Query(at_times(f'windlass_tasks_finished_total{{{KIND},outcome="dead"}}', "fault"), "{{fault}}"),
            unit=a_second("tasks"),
        ),
        graph(
            "Wait before the first start",
            "From the moment a task could start to its claim. Promised: within a minute for 95 of 100.",
            Query(quantile(0.5, wait), "half"),
            Query(quantile(0.95, wait), "95 %"),
            unit="s",
            steps=[(60, RED)],
            width=8,
        ),
        graph(
            "Time of one attempt",
            "From claim to end. Twice as long means half as many tasks through the same slots.",
            Query(quantile(0.5, run), "half"),
            Query(quantile(0.95, run), "95 %"),
            unit="s",
            width=8,
        ),
        graph(
            "From submit to result",
            "What users feel: waiting, retries and dependencies included.",
            Query(quantile(0.5, end_to_end), "half"),
            Query(quantile(0.95, end_to_end), "95 %"),
            unit="s",
            width=8,
        ),
        graph(
            "Attempts, by how they ended",
            "`interrupted` were handed back by a worker that had to stop, `lost` had their lease taken.",
            Query(per_second(f"windlass_attempts_finished_total{{{KIND}}}", "outcome"), "{{outcome}}"),
            unit=a_second("attempts"),
            stacked=True,
        ),
        graph(
            "Errors, by type",
            "One type that stands out names its cause.",
            Query(at_times(f"windlass_attempt_errors_total{{{KIND}}}", "error_type"), "{{error_type}}"),
            unit=a_second("errors"),
            stacked=True,
        ),
    ]


def doorbells() -> list[Panel]:
    return [
        graph(
            "Doorbells, by result",
            "Good: confirmed. `missed`: RabbitMQ did not confirm, and it is rung again. Each is worth up to 64 starts.",
            Query(per_second(f"windlass_doorbells_total{{{QUEUE}}}", "result"), "{{result}}"),
            unit=a_second("doorbells"),
        ),
    ]
