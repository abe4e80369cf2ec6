"""What users notice, or will soon: each with a page that says what to do."""

from deploy.monitoring.generate.alerts import PAGE, TICKET, Alert, Group
from deploy.monitoring.generate.expressions import ATTEMPTS, of_the_cluster, recently

WORK = "actor, provider"
OF_THE_WORK = "actor={{ $labels.actor | urlquery }}&provider={{ $labels.provider | urlquery }}"
JANITOR = "windlass_janitor_last_success_timestamp_seconds"
TARGETS = 'up{job=~"windlass.*"}'
"""The job of compose is `windlass`, that of a PodMonitor `windlass/…`."""

PROJECTS = "/projects"
"""The page's view of projects."""
WEBHOOKS = "/webhooks"

HELD_BACK = (
    f"({of_the_cluster('windlass_provider_paused', 'provider')} == 1"
    f' or max by (provider) (windlass_provider_breaker_state{{state!="closed"}}) == 1'
    f" or {of_the_cluster('windlass_provider_slots_limit', 'provider')} == 0)"
)
"""Providers whose tasks may not start: workers may be away, and who waits waits on purpose."""

BY_AN_OPERATOR = 'max by (provider) (windlass_provider_paused{by="operator"}) == 1'
OLDEST = of_the_cluster("windlass_queue_oldest_seconds", "queue, provider")
WAITING = f"sum by (queue, provider) ({of_the_cluster('windlass_queue_depth', 'queue, provider, lane')})"
WORKERS = of_the_cluster("windlass_queue_workers", "queue, provider")


def queues() -> tuple[Alert, ...]:
    old = (
        "The oldest task that could start has waited for {{ $value | humanizeDuration }} in queue {{ $labels.queue }}."
    )
    return (
        *(
            Alert(
                "WindlassQueueOld",
                severity,
                f"({OLDEST} > {seconds}) unless on (provider) ({BY_AN_OPERATOR})",
                "5m",
                "Tasks of {{ $labels.queue }} wait for long",
                old,
                view="/tasks?status=queued&status=retrying&provider={{ $labels.provider | urlquery }}",
            )
            for severity, seconds in ((TICKET, 900), (PAGE, 3600))
        ),
        Alert(
            "WindlassNoWorker",
            PAGE,
            f"({WAITING} > 0) unless ({WORKERS} > 0) unless on (provider) {HELD_BACK}",
            "5m",
            "Nobody serves {{ $labels.queue }}",
            "Tasks that could start in queue {{ $labels.queue }}, which no worker serves: {{ $value }}.",
            view="/workers",
        ),
        Alert(
            "WindlassDeadLetters",
            TICKET,
            recently('windlass_tasks_finished_total{outcome="dead",fault!="user"}', WORK, "30m") + " > 0",
            "0m",
            "Tasks of {{ $labels.actor }}.{{ $labels.provider }} died",
            "About {{ $value | humanize }} tasks of {{ $labels.actor }}.{{ $labels.provider }} went to the dead letter "
            "queue in the last half hour, and not by their user's fault.",
            view=f"/tasks?status=dead&{OF_THE_WORK}",
        ),
        Alert(
            "WindlassOutOfMemory",
            TICKET,
            recently('windlass_attempt_errors_total{error_type="OutOfMemory"}', WORK, "1h") + " > 0",
            "0m",
            "{{ $labels.actor }}.{{ $labels.provider }} ran out of memory",
            "Subprocesses of {{ $labels.actor }}.{{ $labels.provider }} went over their memory limit in the last hour; "
            "such a task is not tried again.",
            view=f"/tasks?error_type=OutOfMemory&{OF_THE_WORK}",
        ),
    )


def providers() -> tuple[Alert, ...]:
    return (
        Alert(
            "WindlassBreakerOpen",
            TICKET,
            'max by (provider) (windlass_provider_breaker_state{state!="closed"}) == 1',
            "10m",
            "The breaker of {{ $labels.provider }} does not close",
            "{{ $labels.provider }} has failed for ten minutes: nothing is started there but one task a minute that "
            "tries.",
            view="/providers/{{ $labels.provider }}",
        ),
        Alert(
            "WindlassProviderPaused",
            TICKET,
            'max by (provider, by) (windlass_provider_paused{by="provider"}) == 1',
            "30m",
            "{{ $labels.provider }} keeps asking us to wait",
            "{{ $labels.provider }} has answered 429 for half an hour; its tasks wait.",
            view="/providers/{{ $labels.provider }}",
        ),
        Alert(
            "WindlassPauseForgotten",
            TICKET,
            'max by (provider, by) (windlass_provider_paused{by="operator"}) == 1',
            "4h",
            "{{ $labels.provider }} is still paused by hand",
            "An operator paused {{ $labels.provider }} four hours ago or more; its tasks wait until somebody resumes "
            "it.",
            view="/providers/{{ $labels.provider }}",
        ),
    )


def workers() -> tuple[Alert, ...]:
    interrupted = recently(f'{ATTEMPTS}{{outcome="interrupted"}}', WORK, "1h")
    return (
        Alert(
            "WindlassStalls",
            TICKET,
            recently("windlass_stalls_total", WORK, "30m") + " >= 3",
            "0m",
            "Workers of {{ $labels.actor }}.{{ $labels.provider }} get lost",
            "About {{ $value | humanize }} running tasks of {{ $labels.actor }}.{{ $labels.provider }} were taken back "
            "from workers that died, froze or were cut off, in the last half hour. Each cost a retry.",
            view=f"/tasks?error_type=WorkerLost&{OF_THE_WORK}",
        ),
        Alert(
            "WindlassInterruptedAgain",
            TICKET,
            f"({interrupted} >= 10) and ({interrupted} > 0.5 * {recently(ATTEMPTS, WORK, '1h')})",
            "10m",
            "{{ $labels.actor }}.{{ $labels.provider }} is interrupted again and again",
            "About {{ $value | humanize }} attempts of {{ $labels.actor }}.{{ $labels.provider }} were handed back in "
            "the last hour because their worker had to stop, more than half of all: little gets done.",
            view=f"/tasks?status=running&{OF_THE_WORK}",
        ),
    )


def actors() -> tuple[Alert, ...]:
    return (
        Alert(
            "WindlassActorBroken",
            TICKET,
            "sum by (queue) (windlass_queue_broken) > 0",
            "5m",
            "Workers cannot serve {{ $labels.queue }}",
            "{{ $value }} workers that live were to serve {{ $labels.queue }} and cannot, for its actor cannot be "
            "loaded there; they serve their other queues.",
            view="/workers",
        ),
        Alert(
            "WindlassActorVersionsDiffer",
            TICKET,
            f"{of_the_cluster('windlass_actor_versions', 'actor')} > 1",
            "1h",
            "Workers run different versions of {{ $labels.actor }}",
            "{{ $value }} versions of the actor {{ $labels.actor }} have run side by side for an hour: only what all "
            "of them take is accepted.",
            view="/actors/{{ $labels.actor }}",
        ),
    )


def projects() -> tuple[Alert, ...]:
    stopping = of_the_cluster("windlass_project_stopping_seconds", "by")
    return (
        Alert(
            "WindlassProjectStopping",
            TICKET,
            f'(max by (by) (windlass_project_stopping_seconds{{by="force"}}) > 600) or ({stopping} > 21600)',
            "1m",
            "A project does not come to a stop",
            "A project was asked to stop {{ $value | humanizeDuration }} ago (by: {{ $labels.by }}) and is not idle: "
            "its run goes on, or it is not proven that nothing of it lives.",
            view=PROJECTS,
        ),
        Alert(
            "WindlassProjectOrphans",
            TICKET,
            f"{of_the_cluster('windlass_project_orphans')} > 0",
            "5m",
            "Projects whose run has ended unnoticed",
            "{{ $value }} projects are not idle, their runs have ended, and no outbox row says so. The next call "
            "about each of them closes its run.",
            view=PROJECTS,
        ),
    )


def workflows() -> tuple[Alert, ...]:
    return (
        Alert(
            "WindlassWorkflowsEscalated",
            TICKET,
            f"{of_the_cluster('windlass_escalated_workflows')} > 0",
            "5m",
            "Workflows wait until a person resumes or cancels them",
            "{{ $value }} workflows have had as many failures as they tolerate. Running tasks continue, and nothing "
            "else starts.",
            view="/workflows?status=escalated",
        ),
        Alert(
            "WindlassApprovalsOld",
            TICKET,
            f"{of_the_cluster('windlass_oldest_approval_seconds')} > 86400",
            "10m",
            "A task has waited for a person's word for a day",
            "The task that was asked about first has waited for {{ $value | humanizeDuration }}. No worker waits with "
            "it; what depends on it does.",
            view="/approvals",
        ),
        Alert(
            "WindlassWorkflowDrift",
            TICKET,
            # The orchestrator counts again within moments: without looking back, the alert would never fire.
            "max(max_over_time(windlass_workflow_drift[1h])) > 0",
            "1m",
            "Workflows had other counts than their tasks",
            "Within the last hour, the counts of {{ $value }} workflows differed from their tasks. The janitor has "
            "marked them in the outbox, and the orchestrator counts them again.",
            view="/workflows",
        ),
    )


def schedules() -> tuple[Alert, ...]:
    return (
        Alert(
            "WindlassSchedulesLate",
            TICKET,
            f"{of_the_cluster('windlass_schedule_overdue_seconds')} > 60",
            "2m",
            "Nobody starts what is due by schedules",
            "A due time is {{ $value | humanizeDuration }} late, and no orchestrator has decided it. None is lost: "
            "what is no later than its catch-up window is started yet.",
            view="/schedules",
        ),
        Alert(
            "WindlassSchedulesHalted",
            TICKET,
            'sum(max by (reason) (windlass_schedules{state="paused", reason!="asked-for"})) > 0',
            "5m",
            "Schedules stand still although nobody asked for it",
            "{{ $value }} schedules are paused after failures in a row, or because their owners have no key left. They "
            "start nothing until somebody resumes them.",
            view="/schedules?state=paused",
        ),
    )


def webhooks() -> tuple[Alert, ...]:
    return (
        Alert(
            "WindlassWebhookFailing",
            TICKET,
            'max by (state) (windlass_webhooks{state="failing"}) > 0',
            "6h",
            "Webhooks fail, and what they are to be told waits",
            "{{ $value }} endpoints have not taken a delivery for hours. What they are to be told is held, and nothing "
            "of it is lost; after five days of it they are disabled.",
            view=WEBHOOKS,
        ),
        Alert(
            "WindlassWebhookDisabled",
            TICKET,
            f"{of_the_cluster('windlass_given_up_webhooks')} > 0",
            "5m",
            "Webhooks were disabled after five days of failure",
            "{{ $value }} endpoints have failed for five days and are disabled. What happens is kept for them; once a "
            "day one delivery tries, for thirty days.",
            view=WEBHOOKS,
        ),
    )


def memory() -> tuple[Alert, ...]:
    degraded = 'sum(rate(windlass_memory_searches_total{by="text"}[1h]))'
    return (
        Alert(
            "WindlassEmbeddingFailed",
            TICKET,
            'max(windlass_embedding_jobs{state="failed"}) > 0',
            "10m",
            "Some of what agents did has no vector",
            "{{ $value }} embedding jobs have failed: their events are found by their words alone, until the jobs are "
            "retried.",
            view="/tasks?actor=embed&status=dead",
        ),
        Alert(
            "WindlassMemoryBehind",
            TICKET,
            f"({of_the_cluster('windlass_memory_ungathered_seconds')} > 300) "
            'or (max(windlass_embedding_jobs{state="waiting"}) > 100)',
            "15m",
            "What agents did cannot be found yet",
            "The janitor does not gather new events, or their vectors are made more slowly than events come "
            "({{ $value }} s, or jobs).",
            view="/tasks?actor=embed&status=queued",
        ),
        Alert(
            "WindlassMemoryDegraded",
            TICKET,
            f"{degraded} / sum(rate(windlass_memory_searches_total[1h])) > 0.5 and {degraded} > 1 / 600",
            "15m",
            "Memory is searched by words alone",
            "{{ $value | humanizePercentage }} of the questions of the last hour got no vector within two seconds.",
            view="/memory",
        ),
    )


def parts() -> tuple[Alert, ...]:
    return (
        Alert(
            "WindlassOutboxBehind",
            TICKET,
            "max by (feature) (windlass_outbox_oldest_seconds) > 60",
            "5m",
            "The feature {{ $labels.feature }} does not handle the moves of tasks",
            "The oldest move has waited for {{ $value | humanizeDuration }}: no orchestrator runs, or the feature "
            "fails. Tasks are not affected, and no move is lost.",
        ),
        Alert(
            "WindlassDatabaseAway",
            PAGE,
            "max(windlass_database_answers) == 0",
            "1m",
            "Postgres does not answer",
            "No process of the api gets an answer from Postgres (windlass_database_answers is {{ $value }}): nothing "
            "is accepted and nothing started. What is stored is safe.",
        ),
        Alert(
            "WindlassDatabaseFull",
            PAGE,
            "max(windlass_database_writable) == 0",
            "1m",
            "Postgres stores nothing: its disk is full, or it is read-only",
            "Postgres answers and refuses whatever is to be stored (windlass_database_writable is {{ $value }}): every "
            "submit is answered 503, and results wait in their workers until their leases end.",
        ),
        Alert(
            "WindlassBrokerAway",
            PAGE,
            "max(windlass_broker_connected) == 0",
            "2m",
            "No dispatcher reaches RabbitMQ",
            "No dispatcher is connected to RabbitMQ (windlass_broker_connected is {{ $value }}): tasks are accepted "
            "and wait, what runs runs on.",
        ),
        Alert(
            "WindlassBrokerBlocked",
            PAGE,
            "max(windlass_broker_blocked) == 1",
            "2m",
            "RabbitMQ takes no messages",
            "RabbitMQ is short of memory or disk and has blocked whoever sends to it (windlass_broker_blocked is "
            "{{ $value }}): tasks are accepted and wait, what runs runs on.",
        ),
        Alert(
            "WindlassServiceMissing",
            PAGE,
            'absent(windlass_build_info{service="api"}) or absent(windlass_build_info{service="dispatcher"})',
            "5m",
            "No {{ $labels.service }} can be seen",
            "Prometheus reads no {{ $labels.service }} at all: it does not run, or cannot be reached from Prometheus.",
        ),
        Alert(
            "WindlassTargetDown",
            TICKET,
            f"{TARGETS} == 0",
            "5m",
            "{{ $labels.instance }} does not show its metrics",
            "Prometheus cannot read {{ $labels.instance }} of {{ $labels.job }}: it is down, stuck or cut off.",
        ),
        Alert(
            "WindlassJanitorSilent",
            PAGE,
            f'(time() - max by (duty) ({JANITOR}{{duty="stale"}}) > 120) or absent({JANITOR}{{duty="stale"}})',
            "3m",
            "The janitor is silent",
            "The duty {{ $labels.duty }} has not been done for minutes: tasks of dead workers stay `running`, and hold "
            "their slots.",
        ),
        Alert(
            "WindlassJanitorSilent",
            TICKET,
            f'(time() - max by (duty) ({JANITOR}{{duty!~"stale|vector_indexes",rhythm!="hour"}}) > 600) '
            f'or (time() - max by (duty) ({JANITOR}{{rhythm="hour"}}) > 10800)',
            "5m",
            "The janitor does not do its duty {{ $labels.duty }}",
            "The duty {{ $labels.duty }} was last done {{ $value | humanizeDuration }} ago: it fails, or nobody rings "
            "for it. Periodiq rings for most over RabbitMQ.",
        ),
    )


def groups() -> tuple[Group, ...]:
    return (
        Group("windlass-queues", queues()),
        Group("windlass-providers", providers()),
        Group("windlass-workers", workers()),
        Group("windlass-actors", actors()),
        Group("windlass-projects", projects()),
        Group("windlass-workflows", workflows()),
        Group("windlass-schedules", schedules()),
        Group("windlass-webhooks", webhooks()),
        Group("windlass-memory", memory()),
        Group("windlass-parts", parts()),
    )
