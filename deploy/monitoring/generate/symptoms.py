"""What users notice, or will soon: each with a page that says what to do."""

from deploy.monitoring.generate.alerts import PAGE, TICKET, Alert, Group
from deploy.monitoring.generate.expressions import ATTEMPTS, of_the_cluster, recently

WORK = "actor, provider"
JANITOR = "windlass_janitor_last_success_timestamp_seconds"
TARGETS = 'up{job=~"windlass.*"}'
"""The job of compose is `windlass`, that of a PodMonitor `windlass/…`."""

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
        ),
        Alert(
            "WindlassDeadLetters",
            TICKET,
            recently('windlass_tasks_finished_total{outcome="dead",fault!="user"}', WORK, "30m") + " > 0",
            "0m",
            "Tasks of {{ $labels.actor }}.{{ $labels.provider }} died",
            "About {{ $value | humanize }} tasks of {{ $labels.actor }}.{{ $labels.provider }} went to the dead letter "
            "queue in the last half hour, and not by their user's fault.",
        ),
        Alert(
            "WindlassOutOfMemory",
            TICKET,
            recently('windlass_attempt_errors_total{error_type="OutOfMemory"}', WORK, "1h") + " > 0",
            "0m",
            "{{ $labels.actor }}.{{ $labels.provider }} ran out of memory",
            "Subprocesses of {{ $labels.actor }}.{{ $labels.provider }} went over their memory limit in the last hour; "
            "such a task is not tried again.",
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
        ),
        Alert(
            "WindlassProviderPaused",
            TICKET,
            'max by (provider, by) (windlass_provider_paused{by="provider"}) == 1',
            "30m",
            "{{ $labels.provider }} keeps asking us to wait",
            "{{ $labels.provider }} has answered 429 for half an hour; its tasks wait.",
        ),
        Alert(
            "WindlassPauseForgotten",
            TICKET,
            'max by (provider, by) (windlass_provider_paused{by="operator"}) == 1',
            "4h",
            "{{ $labels.provider }} is still paused by hand",
            "An operator paused {{ $labels.provider }} four hours ago or more; its tasks wait until somebody resumes "
            "it.",
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
        ),
        Alert(
            "WindlassInterruptedAgain",
            TICKET,
            f"({interrupted} >= 10) and ({interrupted} > 0.5 * {recently(ATTEMPTS, WORK, '1h')})",
            "10m",
            "{{ $labels.actor }}.{{ $labels.provider }} is interrupted again and again",
            "About {{ $value | humanize }} attempts of {{ $labels.actor }}.{{ $labels.provider }} were handed back in "
            "the last hour because their worker had to stop, more than half of all: little gets done.",
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
        ),
        Alert(
            "WindlassActorVersionsDiffer",
            TICKET,
            f"{of_the_cluster('windlass_actor_versions', 'actor')} > 1",
            "1h",
            "Workers run different versions of {{ $labels.actor }}",
            "{{ $value }} versions of the actor {{ $labels.actor }} have run side by side for an hour: only what all "
            "of them take is accepted.",
        ),
    )


def parts() -> tuple[Alert, ...]:
    return (
        Alert(
            "WindlassUntoldMoves",
            TICKET,
            "max(windlass_untold_moves) > 0",
            "10m",
            "Somebody was not told what has become of a task",
            "{{ $value }} moves of tasks could not be told to the workflow, project or whoever else they concern. The "
            "tasks themselves are as they should be; the janitor tries again.",
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
            f'(time() - max by (duty) ({JANITOR}{{duty!="stale",rhythm!="hour"}}) > 600) '
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
        Group("windlass-parts", parts()),
    )
