"""What the providers have seen: orders, calls, callbacks, and the most that ever ran at once."""

import json
import sqlite3
import time
from collections.abc import Mapping
from typing import Any

from windlass.services.fake_providers.behaviour import Behaviour
from windlass.services.fake_providers.database import forget_everything
from windlass.services.fake_providers.job import Job, Kind

PROVIDERS = ("openrouter", "openai", "leonardo", "midjourney")
RUNNING = "provider = ? AND ended IS NULL AND (ends_at IS NULL OR ends_at > ?)"


class Books:
    """Every entry is committed before the answer that tells of it is sent."""

    def __init__(self, database: sqlite3.Connection, job_seconds: float) -> None:
        self._database = database
        self._job_seconds = job_seconds
        # The connections of an earlier process are gone, and its chats with them.
        database.execute(
            "UPDATE orders SET ended = 'left', ends_at = ? WHERE kind = 'chat' AND ended IS NULL", (time.time(),)
        )

    def take(
        self,
        provider: str,
        job_id: str,
        *,
        kind: Kind,
        prompt: str,
        request: Mapping[str, Any],
        behaviour: Behaviour,
        callback_url: str | None = None,
    ) -> Job:
        """A job runs from here on, whatever becomes of the answer."""
        now = time.time()
        has_end_by_clock = kind != "chat" and "pending" not in behaviour
        by_the_clock = behaviour.number("ends-at", now + behaviour.number("seconds", self.job_seconds))
        ends_at = by_the_clock if has_end_by_clock else None
        outcome = "failed" if "fail" in behaviour or "fail-moderated" in behaviour else "complete"
        with self._database as database:
            database.execute("BEGIN IMMEDIATE")
            database.execute(
                "INSERT INTO orders (provider, job_id, kind, prompt, request, behaviour, at, ends_at, outcome,"
                " callback_url) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(provider, job_id, kind, prompt, json.dumps(request), json.dumps(dict(behaviour.words))),
                    *(now, ends_at, outcome, callback_url),
                ),
            )
            running = database.execute(f"SELECT count(*) FROM orders WHERE {RUNNING}", (provider, now)).fetchone()[0]  # noqa: S608
            database.execute(
                "INSERT INTO peaks VALUES (?, ?) ON CONFLICT DO UPDATE SET most = max(most, excluded.most)",
                (provider, running),
            )
        return self._only("SELECT * FROM orders WHERE job_id = ?", job_id)

    def find(self, provider: str, job_id: str) -> Job | None:
        rows = self._jobs("SELECT * FROM orders WHERE provider = ? AND job_id = ?", provider, job_id)
        return rows[0] if rows else None

    def find_anywhere(self, job_id: str) -> Job | None:
        """A file's address names no provider."""
        rows = self._jobs("SELECT * FROM orders WHERE job_id = ?", job_id)
        return rows[0] if rows else None

    def poll(self, provider: str, job_id: str) -> Job | None:
        """The job as it is now; one that was to be found pending so many times ends with the next."""
        job = self.find(provider, job_id)
        if job is None or "pending" not in job.behaviour or job.state(time.time()) != "running":
            return job
        rows = self._jobs(
            "UPDATE orders SET polls = polls + 1, ends_at = CASE WHEN polls >= ? THEN ? END"
            " WHERE job_id = ? RETURNING *",
            job.behaviour.number("pending", 0),
            time.time(),
            job_id,
        )
        return rows[0]

    def delete(self, provider: str, job_id: str) -> Job | None:
        """A running job is cancelled by it, and has ended then."""
        now = time.time()
        self._database.execute(
            "UPDATE orders SET is_deleted = 1, ended = 'cancelled', ends_at = ?1 WHERE provider = ?2 AND job_id = ?3"
            " AND NOT is_deleted AND ended IS NULL AND (ends_at IS NULL OR ends_at > ?1)",
            (now, provider, job_id),
        )
        self._database.execute("UPDATE orders SET is_deleted = 1 WHERE provider = ? AND job_id = ?", (provider, job_id))
        return self.find(provider, job_id)

    def end(self, job: Job, how: str) -> None:
        """For chats, whose end is not a matter of the clock."""
        self._database.execute(
            "UPDATE orders SET ended = ?, ends_at = ? WHERE job_id = ? AND ended IS NULL",
            (how, time.time(), job.job_id),
        )

    def newest(self, provider: str, offset: int, limit: int) -> list[Job]:
        return self._jobs(
            "SELECT * FROM orders WHERE provider = ? AND NOT is_deleted ORDER BY number DESC LIMIT ? OFFSET ?",
            provider,
            limit,
            offset,
        )

    def count_call(self, provider: str, call: str, status: str) -> None:
        self._database.execute(
            "INSERT INTO calls VALUES (?, ?, ?, 1) ON CONFLICT DO UPDATE SET count = count + 1",
            (provider, call, status),
        )

    def untold(self) -> list[Job]:
        """The jobs whose end somebody may still have to be told."""
        return self._jobs("SELECT * FROM orders WHERE NOT is_told AND kind != 'chat'")

    def begin_telling(self, job: Job) -> bool:
        """False when somebody has begun before."""
        begun = self._database.execute("UPDATE orders SET is_told = 1 WHERE job_id = ? AND NOT is_told", (job.job_id,))
        return begun.rowcount == 1

    def note_callback(self, job: Job, url: str, status: str) -> None:
        row = (job.provider, job.job_id, url, status, time.time())
        self._database.execute("INSERT INTO callbacks VALUES (?, ?, ?, ?, ?)", row)

    @property
    def job_seconds(self) -> float:
        return float(self.setting("job_seconds", self._job_seconds))

    def setting(self, name: str, default: Any) -> Any:
        row = self._database.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
        return default if row is None else json.loads(row["value"])

    def set(self, name: str, value: Any) -> None:
        self._database.execute("REPLACE INTO settings VALUES (?, ?)", (name, json.dumps(value)))

    def tell(self, provider: str) -> dict[str, Any]:
        """Everything about one provider, for tests that ask the other side."""
        now = time.time()
        jobs = self._jobs("SELECT * FROM orders WHERE provider = ? ORDER BY number", provider)
        states = [job.state(now) for job in jobs]
        peak = self._database.execute("SELECT most FROM peaks WHERE provider = ?", (provider,)).fetchone()
        calls: dict[str, dict[str, int]] = {}
        for row in self._database.execute("SELECT * FROM calls WHERE provider = ? ORDER BY call, status", (provider,)):
            calls.setdefault(row["call"], {})[row["status"]] = row["count"]
        told = self._database.execute("SELECT job_id, url, status, at FROM callbacks WHERE provider = ?", (provider,))
        return {
            "orders": [
                {
                    "job_id": job.job_id,
                    "kind": job.kind,
                    "prompt": job.prompt,
                    "request": job.request,
                    "at": job.at,
                    "ends_at": job.ends_at,
                    "state": state,
                }
                for job, state in zip(jobs, states, strict=True)
            ],
            "number_of_orders": len(jobs),
            "cancelled": states.count("cancelled"),
            "running": states.count("running"),
            "most_running": peak["most"] if peak else 0,
            "open_streams": sum(job.kind == "chat" and job.ended is None for job in jobs),
            "calls": calls,
            "callbacks": [dict(row) for row in told],
        }

    def forget_everything(self) -> None:
        forget_everything(self._database)

    def _jobs(self, statement: str, *values: Any) -> list[Job]:
        return [Job.of(row) for row in self._database.execute(statement, values)]

    def _only(self, statement: str, *values: Any) -> Job:
        (job,) = self._jobs(statement, *values)
        return job
