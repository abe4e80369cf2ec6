"""What has become of the tasks of a round, by their rows, their events and the actors' own books."""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.servers.databases import ask

ROWS = """SELECT task_id::text, status, attempt, retry_count, interrupt_count, stall_count
          FROM tasks WHERE task_id = ANY ($1::uuid[])"""
EVENTS = """SELECT task_id::text, type, attempt, extract(epoch FROM at)::float AS at FROM task_events
            WHERE task_id = ANY ($1::uuid[]) AND type IN ('claim', 'complete', 'interrupt', 'stall') ORDER BY seq"""
HELD_BY = "SELECT task_id::text FROM tasks WHERE status = 'running' AND worker_id = $1"
COMPLETED = "SELECT count(*) FROM tasks WHERE task_id = ANY ($1::uuid[]) AND status = 'completed'"


@dataclass(frozen=True)
class Judge:
    database_url: str
    books: Path

    def claimed(self, task_ids: Sequence[str]) -> set[str]:
        """Those of which an attempt was ever claimed."""
        return {row["task_id"] for row in ask(self.database_url, EVENTS, task_ids) if row["type"] == "claim"}

    def running(self, task_ids: Sequence[str]) -> list[str]:
        rows = ask(self.database_url, ROWS, task_ids)
        return [row["task_id"] for row in rows if row["status"] == "running"]

    def held_by(self, worker_id: str) -> set[str]:
        return {row["task_id"] for row in ask(self.database_url, HELD_BY, worker_id)}

    def have_completed(self, task_ids: Sequence[str]) -> bool:
        return bool(ask(self.database_url, COMPLETED, task_ids)[0][0] == len(task_ids))

    def starts(self) -> Mapping[tuple[str, int], list[float]]:
        """When each attempt of a task was started."""
        lines = self.books.read_text().splitlines() if self.books.exists() else []
        found: dict[tuple[str, int], list[float]] = defaultdict(list)
        for entry in [json.loads(line) for line in lines if line]:
            found[entry["task_id"], entry["attempt"]].append(entry["at"])
        return found

    def faults(self, task_ids: Sequence[str], *, interrupts: int, stalls: int = 0) -> list[str]:
        """Each came to its end once, and no attempt was started twice, forgotten, or paid for with a retry. So many of
        them may have been handed back, and so many have lost their worker, each."""
        rows = {row["task_id"]: row for row in ask(self.database_url, ROWS, task_ids)}
        events: dict[str, list[tuple[str, int, float]]] = defaultdict(list)
        for event in ask(self.database_url, EVENTS, task_ids):
            events[event["task_id"]].append((event["type"], event["attempt"], event["at"]))
        started, found = self.starts(), []
        for task_id in task_ids:
            row, story = rows[task_id], events[task_id]
            claims = [attempt for kind, attempt, _ in story if kind == "claim"]
            kinds = Counter(kind for kind, *_ in story)
            late = [
                start
                for kind, attempt, at in story
                for start in started[task_id, attempt]
                if kind in {"interrupt", "stall"} and start > at
            ]
            checks = {
                "has not completed": row["status"] == "completed",
                "has not completed once": kinds["complete"] == 1,
                "was not claimed once for each attempt": claims == list(range(1, row["attempt"] + 1)),
                "has an attempt too many": row["attempt"] == 1 + kinds["interrupt"] + kinds["stall"],
                "has lost its worker": kinds["stall"] == row["stall_count"] <= stalls,
                "was handed back too often": kinds["interrupt"] == row["interrupt_count"] <= interrupts,
                "has lost a retry": row["retry_count"] <= row["stall_count"],
                "has an attempt that was started twice": all(len(started[task_id, each]) <= 1 for each in claims),
                "was started when it had been given away": not late,
                "has completed and not been started": len(started[task_id, row["attempt"]]) == 1,
            }
            wrong = [words for words, is_so in checks.items() if not is_so]
            found += [f"task {task_id} {'; '.join(wrong)}: {dict(row)} {story}"] if wrong else []
        return found
