"""Criteria 3 and 4, by what the other side has in its books: never more at once than allowed, nothing ordered twice."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tests.chaos.judge.rows import Rows
from tests.chaos.judge.violation import ORDERED_TWICE, OVER_THE_LIMIT, Violation
from tests.chaos.record import LimitChange, Record

SEEN_LATE_SECONDS = 1.0
"""A killed client's connection is closed by the kernel at once; on a busy machine a proxy and a server take this long
to notice. What a slot was given away too early for stays open for seconds."""

LOOK_BACK_SECONDS = 15.0
"""An order whose task nobody knows (its client never got an answer) may have been claimed this long before."""

AGENT = "agent"
"""What is not an order at a provider, but a process: an attempt may have several."""

SAME_LOOK_SECONDS = 0.001
"""Whoever was seen in the same look was there at the same moment."""


@dataclass(frozen=True)
class Order:
    """One entry of the books; `task_id` is known by the mark in its text."""

    task_id: str | None
    kind: str
    state: str
    at: float
    ends_at: float
    """When the provider's work on it was over; never, as far as anybody knows, if it still runs."""


def orders_of(record: Record, provider: str, marks: Mapping[str, str]) -> list[Order]:
    entries = record.books.get(provider, {}).get("orders", [])
    return sorted((_order(entry, marks) for entry in entries), key=lambda order: order.at)


def _order(entry: Mapping[str, Any], marks: Mapping[str, str]) -> Order:
    ends_at = entry["ends_at"] if entry["ends_at"] is not None else float("inf")
    return Order(_task_of(entry, marks), entry["kind"], entry["state"], entry["at"], ends_at)


def _task_of(entry: Mapping[str, Any], marks: Mapping[str, str]) -> str | None:
    words = str(entry["prompt"]).split()
    found = (marks[word] for word in words if word in marks)
    return next(found, None)


def agents_of(record: Record) -> list[Order]:
    """Agents have no books: from when to when each process was seen alive says that it was at work."""
    seen = [
        Order(each.task_id, AGENT, "seen", each.first_at, each.last_at + SAME_LOOK_SECONDS) for each in record.sightings
    ]
    return sorted(seen, key=lambda order: order.at)


def over_the_limit(record: Record, rows: Rows, lease_seconds: float) -> Iterator[Violation]:
    marks = {accepted.mark: task_id for task_id, accepted in record.accepted.items()}
    at_work = {provider: orders_of(record, provider, marks) for provider in record.books}
    agents = [
        each for each in agents_of(record) if each.task_id in rows.tasks
    ]  # others may have theirs on this machine
    for provider, orders in {**at_work, "local": agents}.items():
        changes = [change for change in record.limit_changes if change.provider == provider]
        for order in orders:
            if _is_excepted(record, order.at, lease_seconds):
                continue
            company = [each for each in orders if each.at <= order.at < _let_go_at(record, each)]
            claims = [_claimed_at(rows, each) for each in company]
            allowed = most_allowed(rows.limits.get(provider), changes, max(claims, default=order.at))
            number = len({each.task_id for each in company}) if order.kind == AGENT else len(company)
            if allowed is not None and number > allowed:
                words = f"{provider} had {number} at work at once and {allowed} were allowed"
                others = ", ".join(str(each.task_id) for each in company)
                yield Violation(OVER_THE_LIMIT, f"{words} (tasks {others})", order.task_id, order.at)


def _is_excepted(record: Record, at: float, lease_seconds: float) -> bool:
    """A host that stood still as a whole could not end its work; once it moves again it has a lease's time to."""
    return any(fault.is_host_wide and fault.began_at <= at <= fault.ended_at + lease_seconds for fault in record.faults)


def _let_go_at(record: Record, order: Order) -> float:
    """When the client had let go of it, as far as that differs from what the provider could see."""
    if order.kind != "chat" or order.state != "left":
        return order.ends_at
    hidden = [
        fault.began_at
        for fault in record.faults
        if fault.hides_hang_ups and fault.began_at <= order.ends_at and order.at <= fault.ended_at
    ]
    return max(order.at, min([order.ends_at - SEEN_LATE_SECONDS, *hidden]))


def _claimed_at(rows: Rows, order: Order) -> float:
    """The claim that the order was placed under."""
    events = rows.events.get(order.task_id or "", ())
    claims = [event.at for event in events if event.type == "claim" and event.at <= order.at]
    return max(claims, default=order.at - LOOK_BACK_SECONDS)


def most_allowed(configured: int | None, changes: Sequence[LimitChange], at: float) -> int | None:
    """The most that any limit allowed which may have been in force at a claim's moment; none is no limit.

    A limit that is lowered later takes back nothing, so the latest claim of those that are under way decides.
    """
    possible: list[int | None] = [configured]
    for change in sorted(changes, key=lambda change: change.asked_at):
        limit = configured if change.limit is None else change.limit
        if change.done_at < at:
            possible = [limit]
        elif change.asked_at <= at:
            possible.append(limit)
    return None if None in possible else max(limit for limit in possible if limit is not None)


def ordered_twice(record: Record, rows: Rows) -> Iterator[Violation]:
    """An order in the same life as an earlier one, unless the provider had failed the earlier one, or had cancelled it,
    by then: only that allows the task to order again."""
    marks = {accepted.mark: task_id for task_id, accepted in record.accepted.items()}
    for provider in record.books:
        by_life: dict[tuple[str, int], list[Order]] = defaultdict(list)
        for order in orders_of(record, provider, marks):
            if order.kind != "chat" and order.task_id is not None:
                by_life[order.task_id, _life(rows, order)].append(order)
        for (task_id, life), orders in by_life.items():
            for earlier, later in pairwise(orders):
                if earlier.state in {"failed", "cancelled"} and earlier.ends_at <= later.at:
                    continue
                words = (
                    f"task {task_id} ordered at {provider} again {later.at - earlier.at:.1f} s after an order"
                    f" that is {earlier.state}, in its life number {life + 1}"
                )
                yield Violation(ORDERED_TWICE, words, task_id, later.at)


def _life(rows: Rows, order: Order) -> int:
    revived_at = [event.at for event in rows.events.get(order.task_id or "", ()) if event.type == "revive"]
    return bisect_right(revived_at, order.at)
