"""What Postgres is asked in a while, without something and with very many of it that stand still."""

import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from bench.figures import Figure
from bench.statement_log import Asked, asked_within

IDLE_SECONDS = int(os.environ.get("IDLE_SECONDS", "60"))
SETTLE_SECONDS = 5
ALLOWED = 3
"""One more of a kind may fall into the time by where it begins."""


def idle(url: str, log: Path, make: Callable[[], None]) -> tuple[Counter[str], Counter[str]]:
    before = _asked(url, log)
    make()
    return before, _asked(url, log)


def _asked(url: str, log: Path) -> Counter[str]:
    time.sleep(SETTLE_SECONDS)
    return by_statement(asked_within(IDLE_SECONDS, url, log))


def by_statement(asked: Counter[Asked]) -> Counter[str]:
    together: Counter[str] = Counter()
    for each, times in asked.items():
        together[each.statement] += times
    return together


def of_idleness(what: str, word: str, before: Counter[str], after: Counter[str]) -> Figure:
    """No kind of statement that names it and was not there before, and not more of all together."""
    new = [statement for statement in after if statement not in before and word in statement]
    more = after.total() - before.total()
    kinds = f"{len(new)} new kinds" + (f": {'; '.join(each[:80] for each in new[:3])}" if new else "")
    return Figure(
        f"statements in {IDLE_SECONDS} s with {what}",
        f"{after.total()}, without them {before.total()}; {kinds}",
        "none that they cause",
        {"with": after.total(), "without": before.total(), "new_kinds": len(new)},
        reached=more <= max(ALLOWED, before.total() // 20) and not new,
    )
