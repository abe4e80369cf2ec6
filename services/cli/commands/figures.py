"""`windlass stats`: what became of each day's tasks, how long they took and what they cost."""

import argparse
from datetime import date
from typing import Final

from windlass import Figures
from windlass.client.memory import calls
from windlass.client.memory.documents import Grouping
from windlass.client.task import Listing
from windlass.services.cli.commands.arguments import Commands, count
from windlass.services.cli.display.tables import Table
from windlass.services.cli.display.texts import dollars, known, ratio
from windlass.services.cli.session import Session

GROUPS: Final[dict[str, Grouping]] = {
    "actor": "actor",
    "subagent-type": "subagent_type",
    "provider": "provider",
    "user": "user_id",
    "project": "project_id",
}


def add_commands(commands: Commands) -> None:
    parser = commands.add(
        "stats", stats, "show what became of each day's tasks, and what they cost", "windlass stats --by user --csv"
    )
    parser.add_argument("--by", action="append", choices=[*GROUPS], help="may be repeated: both of them (actor)")
    parser.add_argument("--days", type=count, metavar="N", help="so many days up to the last (30)")
    parser.add_argument("--from", dest="first", type=day, metavar="DAY", help="the first, in UTC; else see --days")
    parser.add_argument("--to", dest="last", type=day, metavar="DAY", help="the last, in UTC (today)")
    parser.add_argument("--csv", action="store_true", help="every figure, for a spreadsheet")


def day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a day like 2026-07-01") from None


def stats(session: Session, arguments: argparse.Namespace) -> None:
    group_by = [GROUPS[name] for name in dict.fromkeys(arguments.by or ["actor"])]
    asked = (arguments.first, arguments.last, arguments.days, group_by)
    if arguments.csv:
        session.screen.text(session.client.perform(calls.stats_csv(*asked)).decode())
        return
    session.show(calls.stats(*asked), lambda answer: figures_table(answer, group_by))


def figures_table(answer: Listing[Figures], group_by: list[Grouping]) -> Table:
    rows = [
        (
            str(each.day), *(known(getattr(each, name)) for name in group_by), str(each.created), str(each.completed),
            str(each.failed), ratio(each.error_rate), _seconds(each.average_latency_seconds),
            _seconds(each.wait_p90_seconds), _seconds(each.run_p50_seconds), _seconds(each.run_p90_seconds),
            _seconds(each.heartbeat_delay_seconds), _tokens(each), dollars(each.cost_usd),
            dollars(each.failed_cost_usd),
        )
        for each in answer.items
    ]  # fmt: skip
    headings = {name: spoken.replace("-", " ").upper() for spoken, name in GROUPS.items()}
    return Table(
        columns=(
            "DAY", *(headings[name] for name in group_by), "CREATED", "COMPLETED", "DEAD", "ERRORS", "LATENCY",
            "WAIT P90", "RUN P50", "RUN P90", "HEARTBEAT DELAY", "TOKENS", "COST", "FAILED COST",
        ),
        rows=rows,
        empty="no figures yet: the janitor writes them every minute",
        least=(
            "HEARTBEAT DELAY", "WAIT P90", "RUN P50", "RUN P90", "FAILED COST", "LATENCY", "ERRORS", "TOKENS",
            "CREATED",
        ),
    )  # fmt: skip


def _tokens(figures: Figures) -> str:
    given = [each for each in (figures.prompt_tokens, figures.completion_tokens) if each is not None]
    return str(sum(given)) if given else ""


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}s"
