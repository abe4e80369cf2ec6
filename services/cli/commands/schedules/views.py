"""Schedules and their due times as people read them."""

from datetime import datetime
from zoneinfo import ZoneInfo

from windlass.client.schedules.documents import Preview, Schedule, ScheduleRun
from windlass.services.cli.display.tables import Facts, Table
from windlass.services.cli.display.texts import compact, duration, known, moment


def schedules_table(schedules: tuple[Schedule, ...], empty: str, note: str | None) -> Table:
    rows = [
        (known(each.name), each.state, moment(each.next_at), str(each.failures), started(each), standing(each))
        for each in schedules
    ]
    columns = ("NAME", "STATE", "NEXT", "FAILURES", "STARTS", "WHEN")
    return Table(columns, rows, empty, wide=frozenset({"STARTS", "WHEN"}), note=note, least=("FAILURES",))


def schedule_facts(schedule: Schedule) -> Facts:
    window = duration(schedule.catch_up_window_seconds)
    return Facts(
        [
            ("schedule", known(schedule.name)),
            ("when", known(schedule.words)),
            ("state", standing_of(schedule)),
            *next_lines(schedule.next_times, schedule.timezone),
            ("starts", started(schedule)),
            ("target", compact(schedule.target)),
            ("overlap", schedule.overlap),
            ("catch up", schedule.catch_up if schedule.catch_up == "none" else f"{schedule.catch_up}, within {window}"),
            ("jitter", duration(schedule.jitter_seconds) if schedule.jitter_seconds else ""),
            ("failures", f"{schedule.failures} in a row" if schedule.failures else ""),
            ("pauses after", f"{schedule.pause_after_failures} failures" if schedule.pause_after_failures else ""),
            ("declared by", known(schedule.declared_by)),
            ("user_id", known(schedule.user_id)),
            ("schedule_id", schedule.schedule_id),
        ]
    )


def preview_facts(seen: Preview, zone: str) -> Facts:
    return Facts([("when", known(seen.words)), *next_lines(seen.times, zone)])


def next_lines(times: tuple[datetime, ...], zone: str) -> list[tuple[str, str]]:
    """As the clock on the wall there shows it, with the offset of that day."""
    there = ZoneInfo(zone)
    return [("next", each.astimezone(there).strftime("%a %Y-%m-%d %H:%M:%S %z")) for each in times]


def runs_table(runs: tuple[ScheduleRun, ...], empty: str, note: str | None) -> Table:
    rows = [(moment(each.due_at), each.outcome, each.cause, known(each.ended_as), made(each), why(each))
            for each in runs]  # fmt: skip
    columns = ("DUE", "OUTCOME", "CAUSE", "ENDED", "MADE", "WHY")
    return Table(columns, rows, empty, wide=frozenset({"WHY"}), note=note)


def run_facts(run: ScheduleRun) -> Facts:
    return Facts([("outcome", run.outcome), ("made", made(run)), ("why", why(run)), ("due_at", moment(run.due_at))])


def standing(schedule: Schedule) -> str:
    return known(schedule.words) if schedule.state == "active" else f"{schedule.words}; {paused_because(schedule)}"


def standing_of(schedule: Schedule) -> str:
    return f"paused: {paused_because(schedule)}" if schedule.state == "paused" else schedule.state


def paused_because(schedule: Schedule) -> str:
    """The words of the person who paused it, or else the API's own."""
    return known(schedule.pause_note or schedule.pause_reason)


def started(schedule: Schedule) -> str:
    """What it starts, in a few words."""
    for kind, said in schedule.target.items():
        name = said.get({"task": "actor", "workflow": "name", "project": "project_id"}.get(kind, "")) or ""
        return f"{kind} {known(name)}"
    return ""


def made(run: ScheduleRun) -> str:
    for kind in ("task", "workflow", "project"):
        if (made_id := getattr(run, f"{kind}_id")) is not None:
            return f"{kind} {made_id}"
    return ""


def why(run: ScheduleRun) -> str:
    many = f"{run.count} due times until {moment(run.until)}" if run.until is not None else ""
    return "; ".join(filter(None, (known(run.reason), many)))
