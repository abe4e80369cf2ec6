"""Breakers' windows: judged once more, should two results have missed each other, and old results forgotten."""

from windlass.shared.db import Database
from windlass.shared.settings import Settings
from windlass.shared.store.flow_control import flow

AT_ONCE = 50_000


async def look_after_breakers(db: Database, settings: Settings) -> None:
    rules = flow.Rules.of(settings)
    await flow.judge_windows(db, rules)
    while await flow.forget_results(db, rules, at_most=AT_ONCE) >= AT_ONCE:
        pass
