"""Criteria 17 and 18: what an endpoint is promised, judged by rows, by the receiver's books and by the witness."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from tests.chaos.judge.violation import ARRIVED_WRONGLY, NOT_DELIVERED, Violation
from tests.chaos.record import Record
from tests.chaos.webhooks.books import UNVERIFIED
from tests.chaos.webhooks.rows import DeliveryRow, Entry, Release, WebhookRows

AT_ONCE = 2
"""Deliveries that one endpoint takes at the same time: so many places apart two may be begun."""
WITNESSED = ("task.", "workflow.", "project.")
CHANGED_SECONDS = 1.0
TOLD_LATE_SECONDS = 5.0
"""So long the receiver may not know a new secret yet, after its owner was told."""


def judge_webhooks(record: Record, webhooks: WebhookRows) -> Iterator[Violation]:
    yield from not_delivered(webhooks)
    yield from arrived_wrongly(record, webhooks)
    yield from out_of_order(record, webhooks)


# 17


def not_delivered(webhooks: WebhookRows) -> Iterator[Violation]:
    """Each move that somebody had subscribed to has one delivery, and that arrived, or says why it did not."""
    of_move: dict[tuple[str, str, int], list[DeliveryRow]] = defaultdict(list)
    for delivery in webhooks.deliveries:
        of_move[delivery.webhook_id, delivery.subject, delivery.seq].append(delivery)
    for each in webhooks.subscribed:
        found = of_move[each.webhook_id, each.task_id, each.seq]
        if len(found) != 1:
            words = f"{each.type} of {each.task_id} (seq {each.seq}) has {len(found)} deliveries"
            yield Violation(NOT_DELIVERED, f"{words} to endpoint {each.webhook_id}", each.task_id, each.at)
        elif (found[0].life, found[0].type) != (each.life, each.type):
            words = f"delivery {found[0].delivery_id} tells of {found[0].type} in life {found[0].life}"
            yield Violation(NOT_DELIVERED, f"{words}, and it was {each.type} in {each.life}", each.task_id, each.at)
    arrived = {entry.id for entry in webhooks.entries if 200 <= entry.status < 300}
    for delivery in webhooks.deliveries:
        fault = _fault_of(delivery, arrived)
        if fault is not None:
            yield Violation(NOT_DELIVERED, f"delivery {delivery.delivery_id} {fault}", delivery.task_id)


def _fault_of(delivery: DeliveryRow, arrived: set[str]) -> str | None:
    if delivery.state == "delivered":
        return None if delivery.delivery_id in arrived else "says that it arrived, and the receiver has not taken it"
    if delivery.state == "failed":
        return None if delivery.reason else "has failed, and says nothing of why"
    if delivery.endpoint == "enabled":
        return f"is still {delivery.state} after {delivery.attempts} tries, and its endpoint is enabled"
    return None


# 18


def arrived_wrongly(record: Record, webhooks: WebhookRows) -> Iterator[Violation]:
    """What came is what was stored, byte for byte, under the id of one delivery; and could be verified, but for the
    moments in which nobody knew the secret: its owner's answer had been lost."""
    rows = {delivery.delivery_id: delivery for delivery in webhooks.deliveries}
    for entry in webhooks.entries:
        row = rows.get(entry.id)
        if row is None:
            yield Violation(ARRIVED_WRONGLY, f"{entry.id} came to {entry.path}, and there is no such delivery")
        elif entry.raw != row.body:
            words = f"delivery {entry.id} was another than was stored when it came to {entry.path}"
            yield Violation(ARRIVED_WRONGLY, words, row.task_id, entry.at)
        elif entry.status == UNVERIFIED and not _is_unknown(record, row, entry):
            words = f"delivery {entry.id} could not be verified when it came to {entry.path}"
            yield Violation(ARRIVED_WRONGLY, words, row.task_id, entry.at)
    told_to_nobody = [
        row
        for row in webhooks.deliveries
        if row.type.startswith(("task.", "workflow.", "project."))
        and (row.webhook_id, row.subject, row.seq) not in webhooks.surmised
        and not _was_edited(record, row)
    ]
    for row in told_to_nobody:
        words = f"delivery {row.delivery_id} tells of {row.type}, to which endpoint {row.webhook_id} had not subscribed"
        yield Violation(ARRIVED_WRONGLY, words, row.task_id)


def _was_edited(record: Record, row: DeliveryRow) -> bool:
    """The filter counts that the endpoint had when the delivery was written, which may have changed right after."""
    return any(
        call.kind == "edit" and call.about == row.webhook_id
        and call.asked_at - CHANGED_SECONDS <= row.written_at <= call.done_at + CHANGED_SECONDS
        for call in record.webhooks.calls
    )  # fmt: skip


def _is_unknown(record: Record, row: DeliveryRow, entry: Entry) -> bool:
    return any(
        call.kind == "rotate" and call.about == row.webhook_id and call.lost
        and call.asked_at <= entry.at <= call.done_at + TOLD_LATE_SECONDS
        for call in record.webhooks.calls
    )  # fmt: skip


def out_of_order(record: Record, webhooks: WebhookRows) -> Iterator[Violation]:
    """What an `enable` has released is begun in its order, two at once: where nothing was harmed meanwhile, and of
    those that had been neither tried before nor parked for want of a place."""
    for call in record.webhooks.calls:
        if call.kind != "enable" or call.status != 200 or call.lost:
            continue
        released = [
            each
            for each in webhooks.releases
            if each.webhook_id == call.about and call.asked_at <= each.at <= call.done_at and each.is_fresh
        ]
        begun = [each for each in released if each.claimed_at is not None]
        if not begun or _was_harmed(record, call.asked_at, max(each.claimed_at or 0.0 for each in begun)):
            continue
        yield from _too_early(begun)


def _too_early(released: Sequence[Release]) -> Iterator[Violation]:
    in_order = sorted(released, key=lambda each: each.delivery_id)
    as_begun = sorted(released, key=lambda each: (each.claimed_at or 0.0, each.delivery_id))
    places = {each.delivery_id: place for place, each in enumerate(in_order)}
    for place, each in enumerate(as_begun):
        if places[each.delivery_id] >= place + AT_ONCE:
            words = f"delivery {each.delivery_id} was begun as number {place} of {len(released)} that were released"
            expected = f"and is number {places[each.delivery_id]} at endpoint {each.webhook_id}"
            yield Violation(ARRIVED_WRONGLY, f"{words}, {expected}", None, each.claimed_at)


def _was_harmed(record: Record, begin: float, end: float) -> bool:
    return any(fault.began_at <= end and fault.ended_at >= begin for fault in record.faults)
