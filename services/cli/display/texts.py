"""Values as people read them."""

import json
from datetime import UTC, datetime
from typing import Any

from windlass import Progress, Task, TaskError, Usage


def clean(text: str) -> str:
    """On one line, without anything that a terminal would obey: texts come from actors and providers."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


def moment(at: datetime | None) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ") if at else ""


def age(at: datetime | None, now: datetime | None = None) -> str:
    """How long ago, to two places: `45s`, `3m12s`, `2h05m`, `12d03h`."""
    if at is None:
        return ""
    return duration(max(0.0, ((now or datetime.now(UTC)) - at).total_seconds()))


def duration(seconds: float | None) -> str:
    if seconds is None:
        return ""
    whole = int(seconds)
    for unit, below, size in (("d", "h", 86400), ("h", "m", 3600), ("m", "s", 60)):
        if whole >= size:
            smaller = {"d": 3600, "h": 60, "m": 1}[unit]
            return f"{whole // size}{unit}{whole % size // smaller:02d}{below}"
    return f"{whole}s"


def percent(value: float | None) -> str:
    return "" if value is None else f"{value:.0f} %"


def ratio(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.0f} %"


def known(value: object) -> str:
    """A value as text; what is not known is left blank."""
    if isinstance(value, tuple):
        return ", ".join(known(each) for each in value)
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, dict | list):
        return compact(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return "" if value is None else clean(str(value))


def compact(value: Any) -> str:
    """JSON on one line, readable in any script; what a terminal would obey is escaped."""
    text = json.dumps(value, ensure_ascii=False)
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)


def dollars(value: float | None) -> str:
    """Small sums, too: `$12.5`, `$0.0147`."""
    return "" if value is None else f"${value:.6f}".rstrip("0").rstrip(".")


def spent(usage: Usage) -> str:
    """As far as somebody said so."""
    tokens = ((usage.prompt_tokens, "prompt tokens"), (usage.completion_tokens, "completion tokens"))
    said = [dollars(usage.cost_usd), *(f"{value} {what}" for value, what in tokens if value is not None)]
    return ", ".join(filter(None, said))


def describe(error: TaskError) -> str:
    return clean(f"{error.type}: {error.message}")


def standing(task: Task) -> str:
    """What a task is at, or what became of it, in a few words."""
    if task.error is not None and task.status in {"dead", "retrying"}:
        return describe(task.error)
    return told(task.progress)


def told(progress: Progress) -> str:
    return clean(" ".join(filter(None, (percent(progress.percent), progress.message))))
