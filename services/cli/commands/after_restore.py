"""`windlass after-restore`: puts right what a restored database says wrongly, and tells what to check by hand."""

import argparse
import signal
import subprocess
import sys
from datetime import datetime
from typing import Any, Final

import msgspec

from windlass.services.cli.commands.arguments import OPTIONAL
from windlass.services.cli.display.screen import Screen
from windlass.services.cli.display.tables import Table
from windlass.services.cli.display.texts import known, moment
from windlass.services.cli.parsing import Parser

MODULE: Final = "windlass.services.admin.after_restore"
DESCRIPTION: Final = """\
Run it once after Postgres was restored from a backup, before any service is started again. In one transaction it hands
back what ran at the time of the backup, so that no worker of that time can end it, forgets workers and reports, and
takes every number that clients have seen beyond those that may have been given out since. Orders at providers are kept
and looked for there. It speaks to the Postgres of WINDLASS_DATABASE_URL.
"""
COUNTS: Final = (
    ("running", "running tasks handed back, with a new claim token and a higher attempt"),
    ("waiting", "waiting tasks taken beyond the events that clients may have seen"),
    ("workers", "workers forgotten"),
    ("reports", "reports of dispatchers and janitors forgotten"),
    ("renumbered_events", "events of another server put before all that this one writes"),
    ("numbers_advanced", "sequences advanced"),
)


def add_command(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = commands.add_parser(
        "after-restore",
        help="put right what a restored database says wrongly",
        description=DESCRIPTION,
        example="windlass after-restore --dry-run",
    )
    parser.add_argument("--dry-run", action="store_true", help="show the same and change nothing")
    parser.add_argument("--force", action="store_true", help="although services are connected, or were heard of lately")
    parser.add_argument("-o", "--output", choices=("table", "json"), default=OPTIONAL, help="json is for programs")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    options = [*["--dry-run"] * arguments.dry_run, *["--force"] * arguments.force]
    with subprocess.Popen([sys.executable, "-m", MODULE, *options], stdout=subprocess.PIPE) as process:
        # The first process of a container ignores what it does not ask for; ended, the other one changes nothing.
        signal.signal(signal.SIGTERM, lambda _number, _frame: process.terminate())
        report, _ = process.communicate()
    if report:
        show(Screen(as_json=getattr(arguments, "output", None) == "json"), msgspec.json.decode(report))
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def show(screen: Screen, report: dict[str, Any]) -> None:
    if screen.as_json:
        screen.document(report)
        return
    if report["refused_because"]:
        for reason in report["refused_because"]:
            screen.remark(f"windlass: {reason}")
        screen.remark("windlass: nothing was changed; --force does it all the same")
        return
    if not report["is_needed"]:
        screen.remark("nothing has happened here since `windlass after-restore` was run: there is nothing to do")
        return
    screen.show(report, counts_table(report))
    screen.line("\nWhat to check at the providers:")
    screen.show(report, providers_table(report))
    if report["open_orders"]:
        screen.line("\nOrders that had not ended; they are looked for and not placed again:")
        screen.show(report, orders_table(report))
    screen.line("\nWhat cannot be known here:")
    for each in report["not_known"]:
        screen.line(f"- {each}")
    if report["is_rehearsal"]:
        screen.remark("this was a dry run: nothing was changed")


def counts_table(report: dict[str, Any]) -> Table:
    rows = [(str(report[name]), words) for name, words in COUNTS]
    return Table(columns=("NUMBER", "WHAT"), rows=rows, empty="")


def providers_table(report: dict[str, Any]) -> Table:
    """Whatever was placed between the two times and is not among the open orders is nobody's now."""
    window = (_moment(report["backup_at"]), _moment(report["looked_at"]))
    rows = [
        (each["name"], str(each["open_orders"]), str(each["unordered"]), *window) for each in report["providers"]
    ]  # fmt: skip
    return Table(
        columns=("PROVIDER", "OPEN ORDERS", "TASKS WITHOUT ORDER", "ORDERS PLACED FROM", "TO"),
        rows=rows,
        empty="no provider is paid for its work",
        note="a task without an order may have been ordered in that time, and will be again: "
        "pause its provider before you start the actors, and look there first",
    )


def orders_table(report: dict[str, Any]) -> Table:
    rows = [
        (
            each["provider"], each["task_id"], each["status"], known(each["job_id"]), each["generation_id"],
            _moment(each["ordered_at"]),
        )
        for each in report["open_orders"]
    ]  # fmt: skip
    return Table(columns=("PROVIDER", "TASK", "ORDER IS", "JOB", "REFERENCE", "ORDERED"), rows=rows, empty="")


def _moment(text: str | None) -> str:
    return "" if text is None else moment(datetime.fromisoformat(text))
