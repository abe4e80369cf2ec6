"""A doorbell doubled, lost or late costs moments and never a task."""

from collections.abc import Iterator
from functools import partial

import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.acceptance.conftest import a_channel
from tests.support.installation import Windlass
from tests.support.waiting import wait_until
from windlass.shared.broker import doorbell, queue_arguments
from windlass.shared.settings import Settings

QUEUE = "probe.probe"


@pytest.fixture
def windlass(running_windlass: Windlass) -> Windlass:
    return running_windlass


@pytest.fixture
def bells(windlass: Windlass) -> Iterator[BlockingChannel]:
    with a_channel(windlass.environment["WINDLASS_AMQP_URL"]) as channel:
        yield channel


def test_doubled_doorbells_start_a_task_once(windlass: Windlass, bells: BlockingChannel) -> None:
    client = windlass.client
    task_id = client.submit(payload={"seconds": 0.5})["task_id"]
    for _ in range(20):
        bells.basic_publish("", QUEUE, doorbell(QUEUE, 3))
    task = client.finished(task_id)
    bells.basic_publish("", QUEUE, doorbell(QUEUE, 1))
    client.submit(wait=40)  # behind the late one: when this has run, the late one was dealt with
    assert client.get(task_id) == task
    assert client.story(task_id) == ["submit", "claim", "complete"]


def test_lost_doorbells_are_rung_again(stopped_windlass: Windlass, channel: BlockingChannel) -> None:
    windlass = stopped_windlass
    windlass.start("api")
    windlass.start("dispatcher")
    windlass.wait_until_answering()
    client = windlass.client
    ids = client.submit_many([{}] * 5)
    # Declared as the dispatcher does, which may not have come to it yet.
    declare = partial(channel.queue_declare, QUEUE, durable=True, arguments=queue_arguments(Settings()))
    wait_until("a doorbell in the queue", lambda: declare().method.message_count > 0)
    channel.queue_purge(QUEUE)
    windlass.start("actors")
    for task_id in ids:
        assert client.finished(task_id)["status"] == "completed"
        assert client.story(task_id).count("claim") == 1


def test_a_doorbell_redelivered_while_the_task_waits_to_be_retried_starts_nothing_early(
    windlass: Windlass, bells: BlockingChannel
) -> None:
    client = windlass.client
    failing = {"fail_times": 1, "error_type": "NetworkTimeout"}
    task_id = client.submit(payload=failing, retry_delays=[6])["task_id"]
    waiting = client.wait_until(task_id, "retrying")
    while client.get(task_id)["status"] == "retrying":
        bells.basic_publish("", QUEUE, doorbell(QUEUE, 1))
    finished = client.finished(task_id)
    assert finished["status"] == "completed"
    assert finished["started_at"] >= waiting["available_at"]
    assert client.story(task_id).count("claim") == 2


def test_a_message_that_nobody_can_read_harms_nobody(windlass: Windlass, bells: BlockingChannel) -> None:
    for body in (b"not json", b"{}", doorbell("poet.probe", 1), doorbell(QUEUE, 1).replace(b"[1]", b'["some"]')):
        bells.basic_publish("", QUEUE, body)
    assert windlass.client.submit(wait=40)["status"] == "completed"
