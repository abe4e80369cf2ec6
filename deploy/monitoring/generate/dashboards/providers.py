"""Who does the work for us: may they, do they, and what do they answer."""

from deploy.monitoring.generate.expressions import at_times, of_the_cluster, per_second, quantile
from deploy.monitoring.generate.grafana import Dashboard, Row, Variable
from deploy.monitoring.generate.panels import BLUE, GREEN, RED, YELLOW, Panel, Query, a_second, graph, timeline

CHOSEN = 'provider=~"$provider"'
HALF_OPEN_OR_OPEN = (
    f'max by (provider) (windlass_provider_breaker_state{{{CHOSEN},state="half_open"}}) '
    f'+ 2 * max by (provider) (windlass_provider_breaker_state{{{CHOSEN},state="open"}})'
)
WHO_PAUSED = (
    f'(max by (provider) (windlass_provider_paused{{{CHOSEN},by="provider"}}) > 0) '
    f'or 2 * (max by (provider) (windlass_provider_paused{{{CHOSEN},by="operator"}}) > 0) '
    f"or 0 * max by (provider) (windlass_provider_slots_held{{{CHOSEN}}})"
)


def dashboard() -> Dashboard:
    return Dashboard(
        "providers",
        "Providers",
        "May a provider's tasks start, what does it answer, and what becomes of the work. `windlass providers show "
        "NAME` says the same about one of them, with the reason.",
        [
            Row("May its tasks start?", may_start()),
            Row("What does it answer?", answers()),
            Row("What becomes of the work?", work()),
            Row("What does it cost?", cost()),
        ],
        [Variable("provider", "Provider", "label_values(windlass_provider_slots_held, provider)", several=True)],
    )


def may_start() -> list[Panel]:
    return [
        timeline(
            "Breaker",
            "Good: closed. Open: too many calls failed, nothing is started for a minute, then one task tries. It "
            "closes by itself when the provider is well; `windlass providers set NAME --breaker closed` closes it by "
            "hand.",
            Query(HALF_OPEN_OR_OPEN, "{{provider}}"),
            words={"0": ("closed", GREEN), "1": ("half open", YELLOW), "2": ("open", RED)},
        ),
        timeline(
            "Pause",
            "Good: none. Asked to wait: the provider said 429, and all wait until the time that it named. By an "
            "operator: until `windlass providers set NAME --resume`.",
            Query(WHO_PAUSED, "{{provider}}"),
            words={"0": ("none", GREEN), "1": ("asked to wait", YELLOW), "2": ("by an operator", BLUE)},
        ),
        graph(
            "Slots in use and limit",
            "In use never goes above the limit. At the limit while tasks wait: it is the bottleneck; raise it only if "
            "the provider allows more (`windlass providers set NAME --limit N`).",
            Query(of_the_cluster(f"windlass_provider_slots_held{{{CHOSEN}}}", "provider"), "{{provider}} in use"),
            Query(of_the_cluster(f"windlass_provider_slots_limit{{{CHOSEN}}}", "provider"), "{{provider}} limit"),
        ),
        graph(
            "Oldest lease",
            "How long ago the running task that was renewed longest ago was renewed. Good: below 10 s. Near 30 s its "
            "worker is dead, frozen or cut off, and the task is about to be taken back.",
            Query(of_the_cluster(f"windlass_lease_age_seconds{{{CHOSEN}}}", "provider"), "{{provider}}"),
            unit="s",
            steps=[(20, YELLOW), (30, RED)],
        ),
    ]


def answers() -> list[Panel]:
    calls = f"windlass_provider_calls_total{{{CHOSEN}}}"
    not_well = f'windlass_provider_calls_total{{{CHOSEN},result=~"failed|timeout|unreachable"}}'
    return [
        graph(
            "Calls, by result",
            "Good: ok. `rate_limited` pauses the provider, `refused` is our input, our key or our credit, `failed`, "
            "`timeout` and `unreachable` count for the breaker.",
            Query(per_second(calls, "provider, result"), "{{provider}} {{result}}"),
            unit=a_second("calls"),
            stacked=True,
        ),
        graph(
            "Share of calls that went wrong",
            "By the provider's own fault. Good: below 5 %. The breaker opens at a half of the latest tasks.",
            Query(
                f"({per_second(not_well, 'provider')} or 0 * {per_second(calls, 'provider')}) "
                f"/ ({per_second(calls, 'provider')} > 0)",
                "{{provider}}",
            ),
            unit="percentunit",
            most=1,
            steps=[(0.05, YELLOW), (0.5, RED)],
        ),
        graph(
            "How long calls take, 95 %",
            "By operation. A line that climbs towards the timeout comes before failures: fewer slots may help it.",
            Query(
                quantile(0.95, f"windlass_provider_call_seconds{{{CHOSEN}}}", "provider, operation"),
                "{{provider}} {{operation}}",
            ),
            unit="s",
        ),
        graph(
            "Told to slow down",
            "429 answers. Now and then is fine. Again and again: lower the limit or set a rate "
            "(`windlass providers set NAME --rate 10/60`).",
            Query(
                at_times(f'windlass_provider_calls_total{{{CHOSEN},result="rate_limited"}}', "provider"), "{{provider}}"
            ),
            unit=a_second("answers"),
        ),
    ]


def work() -> list[Panel]:
    return [
        graph(
            "Wait before the first start, 95 %",
            "From the moment a task could start to its claim. Promised: within a minute for 95 of 100.",
            Query(
                quantile(0.95, f'windlass_task_queue_wait_seconds{{{CHOSEN},attempt="first"}}', "provider"),
                "{{provider}}",
            ),
            unit="s",
            steps=[(60, RED)],
        ),
        graph(
            "Time of one attempt, 95 %",
            "From claim to end. Twice as long means half as many tasks through the same slots.",
            Query(quantile(0.95, f"windlass_task_run_seconds{{{CHOSEN}}}", "provider"), "{{provider}}"),
            unit="s",
        ),
        graph(
            "Attempts, by how they ended",
            "Good: completed. `retried` comes again by itself, `buried` waits in the dead letter queue for a person.",
            Query(
                per_second(f"windlass_attempts_finished_total{{{CHOSEN}}}", "provider, outcome"),
                "{{provider}} {{outcome}}",
            ),
            unit=a_second("attempts"),
            stacked=True,
        ),
        graph(
            "Errors, by type",
            "Unauthorized, QuotaExhausted and Forbidden need a person at once: key, credit, rights. The others are "
            "retried.",
            Query(at_times(f"windlass_attempt_errors_total{{{CHOSEN}}}", "error_type"), "{{error_type}}"),
            unit=a_second("errors"),
            stacked=True,
        ),
    ]


def cost() -> list[Panel]:
    hourly = per_second(f"windlass_provider_cost_usd_total{{{CHOSEN}}}", "provider")
    tokens = per_second(f"windlass_provider_tokens_total{{{CHOSEN}}}", "provider, direction")
    return [
        graph(
            "Cost per hour",
            "What the provider said that its work cost, at the present pace.",
            Query(f"3600 * ({hourly})", "{{provider}}"),
            unit="currencyUSD",
            width=8,
        ),
        graph(
            "Tokens per second",
            "Prompt and completion tokens that the provider counted.",
            Query(tokens, "{{provider}} {{direction}}"),
            width=8,
        ),
        graph(
            "Media fetched",
            "Bytes of pictures and films that were downloaded and kept.",
            Query(per_second(f"windlass_media_bytes_total{{{CHOSEN}}}", "provider"), "{{provider}}"),
            unit="Bps",
            width=8,
        ),
    ]
