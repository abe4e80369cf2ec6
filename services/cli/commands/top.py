"""`windlass top`: every queue as it is now, every second, until `q`."""

import argparse
import sys
import time
from collections import deque
from dataclasses import dataclass
from typing import Any, Final

from rich.console import Group
from rich.live import Live
from rich.text import Text

from windlass import Client, Forbidden, Provider, Queues, WindlassError
from windlass.client import calls
from windlass.services.cli.commands.arguments import Commands
from windlass.services.cli.commands.providers import rate_text, why_it_rests
from windlass.services.cli.display.keyboard import pressed, single_keys
from windlass.services.cli.display.tables import Table
from windlass.services.cli.display.texts import clean, duration, known
from windlass.services.cli.session import Session

EVERY_SECONDS: Final = 1.0
WINDOW_SECONDS: Final = 60.0
"""Over how long it is counted how many come to an end."""
ENDED: Final = ("completed", "dead", "cancelled")


@dataclass(frozen=True)
class Look:
    """What was seen at one moment; providers are not shown to everybody."""

    queues: Queues
    providers: dict[str, Provider]
    document: dict[str, Any]
    at: float

    @property
    def ended(self) -> int:
        return sum(self.queues.states.get(state, 0) for state in ENDED)

    def ended_in(self, queue: str) -> int | None:
        return next((each.ended for each in self.queues.queues if each.queue == queue), None)


def add_commands(commands: Commands) -> None:
    commands.add("top", top, "show every queue every second, until q is pressed; once in a pipe", "windlass top")


def top(session: Session, _arguments: argparse.Namespace) -> None:
    screen = session.screen
    if screen.as_json or not screen.is_terminal or not sys.stdin.isatty():
        before = look_at(session.client)
        if not screen.as_json:
            time.sleep(EVERY_SECONDS)  # a pace takes two looks
        look = before if screen.as_json else look_at(session.client)
        screen.show(look.document, queues_table(look, before))
        return
    client = session.impatient_client()
    looks: deque[Look] = deque()
    with single_keys(), Live(console=screen.console, screen=True, auto_refresh=False) as live:
        while True:
            try:
                now = look_at(client)
            except WindlassError as error:
                lines = [Text(clean(str(error)), style="red")]
            else:
                table = queues_table(now, looks[0] if looks else now)
                lines = [Text(heading(now, looks[-1] if looks else None)), Text(""), *table.drawn(screen.console.width)]
                looks.append(now)
                while now.at - looks[0].at > WINDOW_SECONDS:
                    looks.popleft()
            live.update(Group(*lines), refresh=True)
            if "q" in pressed(EVERY_SECONDS).lower():
                return


def look_at(client: Client) -> Look:
    asked = calls.queues()
    document = client.ask(asked)
    try:
        providers = client.ask(calls.providers())
    except Forbidden:
        providers = {"items": []}
    read = calls.providers().read(providers).items
    return Look(
        queues=asked.read(document),
        providers={each.name: each for each in read},
        document={**document, "providers": providers["items"]},
        at=time.monotonic(),
    )


def heading(now: Look, last: Look | None) -> str:
    """How many are in each state, and how many ended in a second since the last look."""
    states = ", ".join(f"{number} {state}" for state, number in now.queues.states.items() if number)
    pace = "" if last is None else f"; {max(0, now.ended - last.ended) / (now.at - last.at):.1f} ended/s"
    return f"windlass {time.strftime('%H:%M:%S')}  {states or 'no task was ever submitted'}{pace}  (q quits)"


def pace(queue: str, now: Look, before: Look) -> str:
    """How many came to an end in a minute, by what was counted between two looks. A revived task has not ended."""
    ended, earlier = now.ended_in(queue), before.ended_in(queue)
    if ended is None or earlier is None or now.at == before.at:
        return ""
    return f"{60 * max(0, ended - earlier) / (now.at - before.at):.0f}"


def queues_table(look: Look, before: Look) -> Table:
    rows = []
    for each in look.queues.queues:
        provider = look.providers.get(each.provider)
        limit = "" if provider is None else known(provider.limit.effective) or "∞"
        rate = "" if provider is None else rate_text(provider.rate.effective)
        because = "" if provider is None else why_it_rests(provider)
        waiting, oldest = str(each.fresh + each.retry), duration(each.oldest_age_seconds)
        row = (each.queue, limit, str(each.running), waiting, oldest, rate, pace(each.queue, look, before))
        rows.append((*row, known(each.workers), because))
    return Table(
        columns=("QUEUE", "LIMIT", "RUNNING", "WAITING", "OLDEST", "RATE", "ENDED/MIN", "WORKERS", "RESTS BECAUSE"),
        rows=rows,
        empty="no queues: no provider is configured",
        wide=frozenset({"RESTS BECAUSE"}),
        least=("RATE", "OLDEST"),
    )
