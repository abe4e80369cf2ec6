"""What every process takes of its machine and of Postgres: the last row of two dashboards."""

from deploy.monitoring.generate.expressions import RATE
from deploy.monitoring.generate.panels import RED, YELLOW, Panel, Query, graph


def processes(which: str) -> list[Panel]:
    """`which` keeps the processes of the dashboard, by the instance that they are."""
    used = 'sum by (instance) (windlass_database_connections{state="used"})'
    return [
        graph(
            "Connections to Postgres in use",
            "Of those that each process may open. Good: below 80 %. All in use: requests wait for one. Raise the pool "
            "only after `max_connections` (docs/operating.md adds it up).",
            Query(f"({used} / sum by (instance) (windlass_database_connections_limit)) {which}", "{{instance}}"),
            unit="percentunit",
            most=1,
            steps=[(0.8, YELLOW), (1, RED)],
            width=8,
        ),
        graph(
            "CPU",
            "Cores. An idle Windlass takes next to none; one process can use one core.",
            Query(f"rate(windlass_process_cpu_seconds_total[{RATE}]) {which}", "{{instance}}"),
            steps=[(0.9, YELLOW)],
            width=8,
        ),
        graph(
            "Memory",
            "Resident. Flat is good; a line that only grows is worth a report, with the version.",
            Query(f"windlass_process_resident_memory_bytes {which}", "{{instance}}"),
            unit="bytes",
            width=8,
        ),
    ]
