"""One order as the provider keeps it: what was asked, since when, and how far it is by the clock."""

import json
import re
import sqlite3
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from windlass.services.fake_providers.behaviour import Behaviour

Kind = Literal["image", "video", "chat"]
NAME = re.compile(r"(?P<job_id>.+)_(?P<index>\d+)\.(?P<extension>[a-z]+)")


@dataclass(frozen=True)
class Job:
    """`outcome` is how it will end at `ends_at`; `ended` says how it did when that was not by the clock."""

    provider: str
    job_id: str
    kind: Kind
    prompt: str
    request: Mapping[str, Any]
    behaviour: Behaviour
    at: float
    ends_at: float | None
    outcome: str
    ended: str | None
    callback_url: str | None
    is_deleted: bool

    @classmethod
    def of(cls, row: sqlite3.Row) -> Self:
        return cls(
            provider=row["provider"],
            job_id=row["job_id"],
            kind=row["kind"],
            prompt=row["prompt"],
            request=json.loads(row["request"]),
            behaviour=Behaviour(json.loads(row["behaviour"])),
            at=row["at"],
            ends_at=row["ends_at"],
            outcome=row["outcome"],
            ended=row["ended"],
            callback_url=row["callback_url"],
            is_deleted=bool(row["is_deleted"]),
        )

    def state(self, now: float) -> str:
        """`running`, `complete`, `failed` or `cancelled`; of a chat whose client went away, `left`."""
        if self.ended is not None:
            return self.ended
        return self.outcome if self.ends_at is not None and self.ends_at <= now else "running"

    def percent(self, now: float) -> int:
        """Grows with time; a job without an end of its own gets ever closer to it."""
        elapsed = max(now - self.at, 0)
        done = elapsed / (self.ends_at - self.at) if self.ends_at is not None else elapsed / (elapsed + 1)
        return min(int(100 * done), 99)

    def file_name(self, index: int, extension: str) -> str:
        return f"{self.job_id}_{index}.{extension}"

    def image_id(self, index: int) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self.job_id}/{index}"))

    def number_of_files(self, ordered: int) -> int:
        return int(self.behaviour.number("images", ordered))
