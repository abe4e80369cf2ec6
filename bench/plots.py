"""The report as pictures: which numbers of which part each one draws."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import svg
from bench.figures import Figure
from bench.report import PLACE, Report, figures_of

OURS = ("Windlass",)


@dataclass(frozen=True)
class Bars:
    """Every figure of a part that has these numbers, as a row under its label; `series` names each number."""

    part: str
    title: str
    subtitle: str
    series: Mapping[str, str]
    unit: str
    ours: Sequence[str] = ()
    factor: float = 1

    def draw(self, figures: Sequence[Figure]) -> str | None:
        rows = [figure for figure in figures if all(name in figure.numbers for name in self.series)]
        if not rows:
            return None
        series = {told: [row.numbers[name] * self.factor for row in rows] for name, told in self.series.items()}
        labels = [row.label or row.name for row in rows]
        return svg.bars(self.title, self.subtitle, labels, series, unit=self.unit, ours=self.ours)


@dataclass(frozen=True)
class Shares:
    """The numbers of one figure, each as a row; their names end in the unit."""

    part: str
    figure: str
    title: str
    subtitle: str
    unit: str

    def draw(self, figures: Sequence[Figure]) -> str | None:
        for figure in figures:
            if figure.name == self.figure:
                names = [name.removesuffix(f"_{self.unit}") for name in figure.numbers]
                series = {"": list(figure.numbers.values())}
                return svg.bars(self.title, self.subtitle, names, series, unit=self.unit)
        return None


@dataclass(frozen=True)
class Growth:
    """Every figure that has a number for each length of history, as a line of ratios to the shortest."""

    part: str
    title: str
    subtitle: str
    lengths: Mapping[str, str]

    def draw(self, figures: Sequence[Figure]) -> str | None:
        rows = [row for row in figures if row.label and all(name in row.numbers for name in self.lengths)]
        if not rows:
            return None
        first, *_ = self.lengths
        series = {row.label: [row.numbers[name] / row.numbers[first] for name in self.lengths] for row in rows}
        return svg.lines(self.title, self.subtitle, list(self.lengths.values()), series, unit="x")


PLOTS: Mapping[str, Bars | Shares | Growth] = {
    "throughput": Bars(
        "contest",
        "No-op tasks per second",
        "The same work on the same servers and cores. More is better.",
        {"tasks_per_second": "tasks/s"},
        "/s",
        OURS,
    ),
    "submit_to_start": Bars(
        "contest",
        "From submit to start, on an idle system",
        "Milliseconds until the task's own code runs. Less is better.",
        {"start_p50_ms": "median", "start_p99_ms": "99th percentile"},
        "ms",
    ),
    "hand_off": Bars(
        "contest",
        "From a freed slot to its next holder, limit 1",
        "Median milliseconds that the one slot stands empty. Less is better.",
        {"hand_off_p50_ms": "median"},
        "ms",
        OURS,
    ),
    "killed_to_running": Bars(
        "contest",
        "From SIGKILL of a worker to its task running again",
        "Seconds. Less is better.",
        {"killed_to_running_seconds": "seconds"},
        "s",
        OURS,
    ),
    "cpu_by_stage": Shares(
        "engine",
        "CPU per task by stage",
        "CPU per task, by process",
        "Milliseconds of one core that a no-op task takes in each. Less is better.",
        "ms",
    ),
    "api": Bars(
        "api",
        "Requests, or tasks in batches, per second of one api process",
        "Against bare Litestar handlers with one statement each. More is better.",
        {"per_second": "per second"},
        "/s",
        ("POST /tasks", "POST /tasks/batch of 1000", "GET /tasks/{id}"),
    ),
    "streams": Bars(
        "streams",
        "From commit to client, by open streams",
        "Milliseconds until an event that was committed has reached a client. Less is better.",
        {"p50_ms": "median", "p99_ms": "99th percentile"},
        "ms",
    ),
    "history": Growth(
        "history",
        "Cost by finished tasks in history",
        "Against the same with none. 1 x is the aim: history costs nothing.",
        {"at_0": "0", "at_100000": "100,000", "at_2000000": "2,000,000"},
    ),
    "memory": Bars(
        "footprint",
        "Memory by process",
        "Megabytes, shared pages divided among those that share them.",
        {"idle_mb": "idle", "used_mb": "after work"},
        "MB",
    ),
    "idle": Bars(
        "footprint",
        "Queries per minute while nothing happens",
        "The aim is below 30 for each process.",
        {"queries_per_second": "queries"},
        "/min",
        factor=60,
    ),
}


def drawn(report: Report) -> dict[str, str]:
    """Every picture whose part was measured, by its name."""
    pictures = {}
    for name, plot in PLOTS.items():
        picture = plot.draw(figures_of(report[plot.part])) if plot.part in report else None
        if picture:
            pictures[name] = picture
    return pictures


def keep(report: Report, place: Path = PLACE) -> None:
    place.mkdir(parents=True, exist_ok=True)
    for name, picture in drawn(report).items():
        (place / f"{name}.svg").write_text(picture)
