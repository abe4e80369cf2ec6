"""What clients meet: answers, how fast they come, and streams."""

from deploy.monitoring.generate.dashboards.processes import processes
from deploy.monitoring.generate.expressions import at_times, per_second, quantile
from deploy.monitoring.generate.grafana import Dashboard, Row
from deploy.monitoring.generate.objectives import API
from deploy.monitoring.generate.panels import GREEN, RED, YELLOW, Panel, Query, a_second, graph, stat

REQUESTS = "windlass_http_requests_total"
OF_THE_API = 'and on (instance) windlass_build_info{service="api"}'


def dashboard() -> Dashboard:
    return Dashboard(
        "api-and-streams",
        "API and streams",
        "What clients meet: are they answered, how fast, and do their streams follow.",
        [
            Row("Are clients answered?", answered()),
            Row("How fast?", fast()),
            Row("Do streams follow?", streams()),
            Row("What do the processes take?", processes(OF_THE_API)),
        ],
    )


def answered() -> list[Panel]:
    return [
        stat(
            "Answered well in the last hour",
            "Requests without a 5xx. Promised: 99.9 %. No data: nobody asked.",
            f"1 - {API.recorded('1h')}",
            unit="percentunit",
            decimals=3,
            steps=[(0, RED), (0.997, YELLOW), (0.999, GREEN)],
            width=8,
        ),
        stat(
            "Requests now",
            "Per second, over all processes of the api.",
            per_second(REQUESTS),
            unit="reqps",
            decimals=1,
            width=8,
        ),
        stat(
            "Processes of the api",
            "As many as were wished for; more come with CPU (HorizontalPodAutoscaler).",
            'count(windlass_build_info{service="api"}) or vector(0)',
            width=8,
        ),
        graph(
            "Requests, by status",
            "4xx are clients' mistakes, 429 ours to slow one down, 503 says that Postgres is away or the api "
            "overloaded.",
            Query(per_second(REQUESTS, "status"), "{{status}}"),
            unit="reqps",
            stacked=True,
        ),
        graph(
            "Errors, by route",
            "5xx alone. Good: none. One route: a bug, look for its request id in the log. All routes: Postgres.",
            Query(at_times(f'{REQUESTS}{{status=~"5.."}}', "route"), "{{route}}"),
            unit=a_second("errors"),
        ),
    ]


def fast() -> list[Panel]:
    seconds = "windlass_http_request_seconds"
    ordinary = f'{seconds}{{route!~".*/stream"}}'
    return [
        graph(
            "Time to answer",
            "All routes but streams. Requests with ?wait= take as long as they were asked to. Good: half below 50 ms.",
            Query(quantile(0.5, ordinary), "half"),
            Query(quantile(0.95, ordinary), "95 %"),
            Query(quantile(0.99, ordinary), "99 %"),
            unit="s",
        ),
        graph(
            "The slowest routes, 95 %",
            "The ten slowest. Lists over a long history are the usual ones; submitting should stay below 100 ms.",
            Query(f"topk(10, {quantile(0.95, seconds, 'method, route')})", "{{method}} {{route}}"),
            unit="s",
        ),
    ]


def streams() -> list[Panel]:
    return [
        graph(
            "Open streams",
            "Hundreds for each process are fine. A sudden drop: a process ended, clients come back by themselves and "
            "lose nothing.",
            Query("sum by (kind) (windlass_stream_clients)", "{{kind}}"),
            stacked=True,
            width=8,
        ),
        graph(
            "From commit to sending, 95 %",
            "How far streams lag behind what happened. Good: below a quarter of a second. Seconds: the api's CPU, or "
            "the connection that listens was lost and the safety poll does its work.",
            Query(quantile(0.95, "windlass_stream_delay_seconds", "kind"), "{{kind}}"),
            unit="s",
            steps=[(1, YELLOW)],
            width=8,
        ),
        graph(
            "Streams cut off",
            "Because their client read too slowly; it resumes where it was. Many: a proxy that buffers.",
            Query(at_times("windlass_streams_cut_total", "kind"), "{{kind}}"),
            unit=a_second("streams"),
            width=8,
        ),
    ]
