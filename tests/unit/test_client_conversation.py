"""What the clients say in which order, without a wire: when to repeat, when to pause, when to give up."""

import itertools
from typing import Any

import msgspec
import pytest

from windlass.client import calls
from windlass.client.call import Call, Request, next_page
from windlass.client.conversation import Answer, Conversation, Outcome, Patience, Pause, ask, wait
from windlass.client.errors import ApiError, Conflict, Unavailable, Unreachable, WaitTimeout
from windlass.client.reading import Reading
from windlass.client.task import Listing, Task

LOST = Unreachable("lost on the way", sent=True)
REFUSED = Unreachable("nobody there", sent=False)
BUSY = Answer(503, b'{"code": "database-unavailable"}', "2")
IN_FLIGHT = Answer(409, b'{"code": "idempotency-key-in-flight"}')


def answer(**document: Any) -> Answer:
    return Answer(200, msgspec.json.encode(document))


TASK = answer(task_id="t", actor="probe", status="completed")


def hold(conversation: Conversation[Any], outcomes: list[Outcome]) -> tuple[Any, list[Request], list[float]]:
    """What came of it, what was sent and how long was paused in between."""
    waiting = iter(outcomes)
    sent: list[Request] = []
    pauses: list[float] = []
    outcome: Outcome = None
    while True:
        try:
            step = conversation.send(outcome)
        except StopIteration as end:
            return end.value, sent, pauses
        if isinstance(step, Pause):
            pauses.append(step.seconds)
            outcome = None
        else:
            sent.append(step)
            outcome = next(waiting)


def test_a_submit_is_repeated_under_one_key_until_it_is_known_to_be_stored() -> None:
    call = calls.submit("probe", {}, None, {})
    document, sent, pauses = hold(ask(call, Patience(60)), [LOST, BUSY, IN_FLIGHT, REFUSED, TASK])
    assert document["task_id"] == "t"
    assert len({request.headers["Idempotency-Key"] for request in sent}) == 1
    assert {request.body for request in sent} == {call.request().body}
    assert len(pauses) == 4
    assert 2 <= pauses[1] <= 2.4, "as long as the server asked for, and a little more"


def test_two_submits_are_two() -> None:
    one, two = (calls.submit("probe", {}, None, {}) for _ in range(2))
    assert one.headers["Idempotency-Key"] != two.headers["Idempotency-Key"]
    assert calls.submit("probe", {}, "mine", {}).headers["Idempotency-Key"] == "mine"


@pytest.mark.parametrize("call", [calls.retry("t"), calls.revive({}), calls.create_key("user", "a", None, None)])
@pytest.mark.parametrize("trouble", [LOST, BUSY])
def test_what_might_happen_twice_is_not_repeated_when_it_may_have_arrived(call: Call[Any], trouble: Outcome) -> None:
    with pytest.raises((Unreachable, Unavailable)):
        hold(ask(call, Patience(60)), [trouble])


def test_what_never_arrived_is_always_repeated() -> None:
    document, sent, _ = hold(ask(calls.retry("t"), Patience(60)), [REFUSED, TASK])
    assert (document["task_id"], len(sent)) == ("t", 2)


def test_a_batch_is_repeated_under_one_key() -> None:
    batch = calls.submit_batch([{"actor": "probe"}])
    _, sent, _ = hold(ask(batch, Patience(60)), [LOST, IN_FLIGHT, answer(tasks=[])])
    assert len(sent) == 3
    assert len({request.headers["Idempotency-Key"] for request in sent}) == 1


def test_a_refusal_is_no_trouble_that_passes() -> None:
    with pytest.raises(Conflict):
        hold(ask(calls.cancel("t"), Patience(60)), [Answer(409, b"{}")])


def test_patience_ends_and_says_what_the_trouble_was() -> None:
    with pytest.raises(Unreachable, match="lost on the way"):
        hold(ask(calls.get("t"), Patience(0)), [LOST])
    with pytest.raises(ApiError) as busy:
        hold(ask(calls.get("t"), Patience(1)), [BUSY])
    assert busy.value.code == "database-unavailable"


def test_pauses_grow_to_a_limit_and_start_anew_after_a_success() -> None:
    patience = Patience(float("inf"))
    pauses = [patience.bear(LOST) for _ in range(12)]
    assert pauses[0] < 0.2
    assert all(later > 1.5 * earlier for earlier, later in itertools.pairwise(pauses[:5]))
    assert max(pauses) <= 6
    patience.renew()
    assert patience.bear(LOST) < 0.2


def test_waiting_asks_again_until_the_task_has_ended() -> None:
    running = answer(task_id="t", actor="probe", status="running")
    task, sent, pauses = hold(wait("t", None, 60), [running, LOST, BUSY, running, TASK])
    assert task.status == "completed"
    assert [request.params["wait"] for request in sent] == [50] * 5
    assert [request.held_back_seconds for request in sent] == [50] * 5
    assert pauses[0] == pytest.approx(0.2), "a server that shuts down answers at once; it is not asked in a frenzy"


def test_waiting_ends_when_the_time_is_up() -> None:
    running = answer(task_id="t", actor="probe", status="running")
    with pytest.raises(WaitTimeout) as late:
        hold(wait("t", 0, 60), [running])
    assert late.value.task.status == "running"
    assert isinstance(late.value, TimeoutError)


def test_batches_hold_a_thousand_at_most_and_have_a_key_each() -> None:
    made_up, named = (
        list(calls.submit_batches(({"actor": "probe"} for _ in range(2500)), key)) for key in (None, "mine")
    )
    assert [len(batch.body["tasks"]) for batch in made_up] == [1000, 1000, 500]
    assert len({batch.headers["Idempotency-Key"] for batch in made_up}) == 3
    assert [batch.headers["Idempotency-Key"] for batch in named] == ["mine-1", "mine-2", "mine-3"]


def test_the_next_page_is_the_same_question_further_on() -> None:
    call = calls.list_tasks({"status": ["dead"], "tag": "x"}, 5)
    further = next_page(call, Listing[Task](items=(), next_cursor="c"))
    assert further is not None
    assert further.request().params == {"status": ["dead"], "tag": "x", "limit": 5, "cursor": "c"}
    assert next_page(call, Listing[Task](items=())) is None
    events = next_page(calls.events("t"), Listing(items=(), next_cursor="200"))
    assert events is not None
    assert events.params["after"] == "200"


def message(seq: int, event: str = "progress") -> bytes:
    return f'id: {seq}\nevent: {event}\ndata: {{"attempt": 1}}\n\n'.encode()


def test_a_stream_resumes_after_the_last_event_and_drops_what_it_has_seen() -> None:
    reading = Reading("t", 0, 60)
    assert "Last-Event-ID" not in reading.request().headers
    assert reading.opened("text/event-stream; charset=utf-8") is False
    told = [each.seq for each in reading.feed(message(1) + message(3) + message(4)[:-3])]
    assert told == [1, 3]
    reading.interrupted(LOST)
    assert reading.request().headers["Last-Event-ID"] == "3"
    assert reading.opened("text/event-stream") is True
    assert [each.seq for each in reading.feed(message(3) + message(4))] == [4], "half an event was not told"
    assert not reading.is_over()
    assert [each.event for each in reading.feed(message(5, "complete") + message(6))] == ["complete"]
    assert reading.is_over()


def test_a_stream_pauses_as_long_as_the_server_asked_its_readers_to() -> None:
    reading = Reading("t", 0, 60)
    reading.opened("text/event-stream")
    list(reading.feed(b"retry: 1500\n\n"))
    assert 1.5 <= reading.interrupted(None) <= 1.8


def test_a_stream_that_has_nothing_more_to_say_is_over() -> None:
    reading = Reading("t", 7, 60)
    assert reading.request().headers["Last-Event-ID"] == "7"
    assert reading.refused(Answer(204, b"")) is None
    assert reading.is_over()


def test_a_stream_bears_a_503_and_raises_a_404() -> None:
    reading = Reading("t", 0, 60)
    busy = reading.refused(BUSY)
    assert isinstance(busy, Unavailable)
    assert 2 <= reading.interrupted(busy) <= 2.4
    with pytest.raises(ApiError):
        reading.refused(Answer(404, b'{"code": "task-not-found"}'))
