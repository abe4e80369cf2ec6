"""A place in a transaction at which whoever comes there stands still, until it is let go or undone."""

import asyncio
import time
from dataclasses import dataclass
from typing import Any, Self

import asyncpg

KEY = 471147
LOOK_EVERY_SECONDS = 0.02
WAIT_SECONDS = 90.0

WAITING = """
SELECT a.pid FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.objid = $1 AND NOT l.granted AND a.application_name LIKE $2 || '%' LIMIT 1
"""
STILL_WAITING = """
SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = $1 AND pid = $2 AND NOT granted
"""
AT_WORK = "SELECT 1 FROM pg_stat_activity WHERE pid = $1 AND state = 'active'"


@dataclass(frozen=True)
class Place:
    """A row that is written or deleted: of which table, which of them, and of which task if it is an event."""

    table: str
    deed: str
    condition: str
    key: str | None = None


class HeldPlace:
    """Only the first that comes is held: as soon as it is let go, all pass."""

    def __init__(self, database_url: str, place: Place) -> None:
        self._url = database_url
        self._place = place
        self._loop = asyncio.new_event_loop()

    def __enter__(self) -> Self:
        self._connection = self._run(asyncpg.connect(self._url))
        place = self._place
        is_it = "true"
        if place.key is not None:
            is_it = f"EXISTS (SELECT 1 FROM tasks t WHERE t.task_id = NEW.task_id AND t.workflow_key = '{place.key}')"
        self._run(self._connection.execute(f"SELECT pg_advisory_lock({KEY})"))
        self._run(
            self._connection.execute(f"""
                CREATE OR REPLACE FUNCTION public.storm_hold() RETURNS trigger LANGUAGE plpgsql
                SET lock_timeout = 0 AS $$
                BEGIN
                    IF {is_it} THEN
                        PERFORM pg_advisory_xact_lock_shared({KEY});
                    END IF;
                    RETURN coalesce(NEW, OLD);
                END $$;
                CREATE TRIGGER storm_hold BEFORE {place.deed} ON {place.table}
                FOR EACH ROW WHEN ({place.condition}) EXECUTE FUNCTION public.storm_hold();
            """)
        )
        return self

    def wait_for(self, name: str, *, seconds: float = WAIT_SECONDS) -> int:
        """Which connection of that process stands there."""
        until = time.monotonic() + seconds
        while not (backend := self._run(self._connection.fetchval(WAITING, KEY, name))):
            assert time.monotonic() < until, f"no {name} came to {self._place}"
            time.sleep(LOOK_EVERY_SECONDS)
        return int(backend)

    def let_go(self, backend: int, *, undone: bool) -> bool:
        """Its process is dead; its transaction is undone, or goes on to its commit. A machine that was too busy to kill
        in time has let it give up by itself: then nothing was shown, and the answer is false."""
        was_held = bool(self._run(self._connection.fetchval(STILL_WAITING, KEY, backend)))
        if undone:
            self._run(self._connection.execute("SELECT pg_terminate_backend($1)", backend))
        self._run(self._connection.execute("SELECT pg_advisory_unlock_all()"))
        while self._run(self._connection.fetchval(AT_WORK, backend)):
            time.sleep(LOOK_EVERY_SECONDS)
        return was_held

    def __exit__(self, *_: object) -> None:
        self._run(self._connection.execute("SELECT pg_advisory_unlock_all()"))
        self._run(self._connection.execute(f"DROP TRIGGER storm_hold ON {self._place.table}"))
        self._run(self._connection.close())
        self._loop.close()

    def _run(self, doing: Any) -> Any:
        return self._loop.run_until_complete(doing)
