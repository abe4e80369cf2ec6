"""What is promised over 30 days, how much of the allowance is used up, and who is told when it goes too fast."""

from dataclasses import dataclass

from deploy.monitoring.generate.alerts import PAGE, TICKET, Alert, Group, Recording

WINDOWS = ("5m", "30m", "1h", "2h", "6h", "1d", "3d")
FEWEST = 10
"""A night with three requests has no percentages: nobody is woken for fewer failures than this."""


@dataclass(frozen=True)
class Burn:
    """So many times too fast, over a long window and still in a short one."""

    times: float
    long: str
    short: str


FAST = (Burn(14.4, "1h", "5m"), Burn(6, "6h", "30m"))
SLOW = (Burn(3, "1d", "2h"), Burn(1, "3d", "6h"))


@dataclass(frozen=True)
class Objective:
    """`bad` and `all` are sums of rates, with WINDOW where their window stands; `budget` is the share that may be "
    "bad."""

    name: str
    alert: str
    promise: str
    budget: float
    bad: str
    all: str
    means: str
    view: str = "/"

    def recorded(self, window: str) -> str:
        return f"slo:windlass_{self.name}:ratio_rate{window}"

    def counted(self, window: str) -> str:
        return f"slo:windlass_{self.name}:increase{window}"

    def recordings(self) -> tuple[Recording | Alert, ...]:
        """Nothing is recorded while there is nothing to judge: a share of nothing is no share."""
        shares = (
            Recording(
                self.recorded(each),
                f"({self.bad.replace('WINDOW', each)} or vector(0)) / ({self.all.replace('WINDOW', each)} > 0)",
            )
            for each in WINDOWS
        )
        counts = (
            Recording(self.counted(each), self.bad.replace("WINDOW", each).replace("rate(", "increase("))
            for each in sorted({burn.long for burn in FAST})
        )
        return (*shares, *counts)

    def alerts(self) -> tuple[Recording | Alert, ...]:
        return self._alert(PAGE, "2m", FAST), self._alert(TICKET, "15m", SLOW)

    def _alert(self, severity: str, lasting: str, burns: tuple[Burn, ...]) -> Alert:
        when = "within hours" if severity == PAGE else "before the month is over"
        return Alert(
            self.alert,
            severity,
            " or ".join(self._burns(burn, enough=severity == PAGE) for burn in burns),
            lasting,
            f"{self.promise}: the allowance of failures is used up {when}",
            f"{self.means} {{{{ $value | humanizePercentage }}}} of late, and {self.budget:.1%} may (objective: "
            "{{ $labels.objective }}).",
            {"objective": self.name.replace("_", "-")},
            self.view,
        )

    def _burns(self, burn: Burn, *, enough: bool) -> str:
        border = f"{burn.times * self.budget:.6g}"
        parts = [f"{self.recorded(each)} > {border}" for each in (burn.long, burn.short)]
        if enough:
            parts.append(f"{self.counted(burn.long)} >= {FEWEST}")
        return "(" + " and ".join(parts) + ")"


OF_CLIENTS = 'route!~"/health.*|/metrics"'
"""Probes ask many times a minute and are told 503 on purpose: they are nobody's requests."""
API = Objective(
    name="api_errors",
    alert="WindlassApiAvailability",
    promise="Requests are answered",
    budget=0.001,
    bad=f'sum(rate(windlass_http_requests_total{{{OF_CLIENTS},status=~"5.."}}[WINDOW]))',
    all=f"sum(rate(windlass_http_requests_total{{{OF_CLIENTS}}}[WINDOW]))",
    means="Requests that the api answered with an error of its own (5xx):",
)
FIRST_WAITS = 'windlass_task_queue_wait_seconds_count{attempt="first"}'
FIRST_WAITS_OF_A_MINUTE = 'windlass_task_queue_wait_seconds_bucket{attempt="first",le="60.0"}'
STARTS = Objective(
    name="late_starts",
    alert="WindlassLateStarts",
    promise="Tasks start within a minute",
    budget=0.05,
    bad=f"(sum(rate({FIRST_WAITS}[WINDOW])) - sum(rate({FIRST_WAITS_OF_A_MINUTE}[WINDOW])))",
    all=f"sum(rate({FIRST_WAITS}[WINDOW]))",
    means="First attempts that started later than a minute after they could:",
    view="/tasks?status=queued&lane=fresh",
)
SUCCESS = Objective(
    name="failures",
    alert="WindlassTaskFailures",
    promise="Tasks succeed",
    budget=0.01,
    bad='sum(rate(windlass_tasks_finished_total{outcome="dead",fault!="user"}[WINDOW]))',
    all='sum(rate(windlass_tasks_finished_total{outcome=~"completed|dead",fault!="user"}[WINDOW]))',
    means="Tasks that died, and not by their user's own fault:",
    view="/dead",
)
OBJECTIVES = (API, STARTS, SUCCESS)

UNACCOUNTED = Alert(
    "WindlassUnaccountedTasks",
    PAGE,
    "max(windlass_unaccounted_tasks) > 0",
    "2m",
    "Tasks that nobody is going to move",
    "{{ $value }} tasks are due, running or blocked, and no part of the system is going to move them (objective: "
    "{{ $labels.objective }}).",
    {"objective": "nothing-unaccounted"},
)


def groups() -> tuple[Group, ...]:
    """An objective's alerts stand behind what they are judged by, so that they see what was recorded just now."""
    burning = (
        Group(f"windlass-{each.name.replace('_', '-')}", each.recordings() + each.alerts(), interval="1m")
        for each in OBJECTIVES
    )
    return (*burning, Group("windlass-unaccounted", (UNACCOUNTED,)))
