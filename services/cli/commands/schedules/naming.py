"""Arguments that the commands about schedules share."""

import argparse
from typing import get_args

from windlass.client.schedules.documents import CatchUp, Overlap
from windlass.client.schedules.options import Times
from windlass.services.cli.commands.arguments import count, seconds
from windlass.services.cli.commands.completing import is_a_schedule
from windlass.services.cli.references import SCHEDULE

MOST = 20


def add_schedule(parser: argparse.ArgumentParser) -> None:
    is_a_schedule(
        parser.add_argument(
            "schedule", type=SCHEDULE.read, metavar="SCHEDULE", help="its name, its id, or the beginning of its id"
        )
    )


def add_times(parser: argparse.ArgumentParser, *, required: bool) -> None:
    when = parser.add_argument_group("when").add_mutually_exclusive_group(required=required)
    when.add_argument("--cron", metavar="EXPRESSION", help="minute, hour, day, month, day of the week: '30 2 * * 1-5'")
    when.add_argument("--every", dest="every_seconds", type=count, metavar="SECONDS", help="from 10 on")
    parser.add_argument("--timezone", metavar="ZONE", help="of --cron, such as Europe/Berlin; else UTC")


def times_of(arguments: argparse.Namespace) -> Times:
    return {"cron": arguments.cron, "every_seconds": arguments.every_seconds, "timezone": arguments.timezone}


def add_policies(parser: argparse.ArgumentParser) -> None:
    """Named as the API names them."""
    group = parser.add_argument_group("what may be in the way")
    group.add_argument("--overlap", choices=get_args(Overlap), help="while the last one lives (skip)")
    group.add_argument("--catch-up", choices=get_args(CatchUp), help="of times that nobody was there for (latest)")
    group.add_argument(
        "--catch-up-window", dest="catch_up_window_seconds", type=seconds, metavar="SECONDS", help="so late (3600)"
    )
    group.add_argument(
        "--jitter", dest="jitter_seconds", type=seconds, metavar="SECONDS", help="each so late at most (0)"
    )
    group.add_argument("--pause-after-failures", type=count, metavar="N", help="so many in a row pause it")
