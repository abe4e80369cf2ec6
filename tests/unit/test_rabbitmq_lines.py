"""However many connections to RabbitMQ are lost, and however often tried: one line, and one when all are back."""

import io
import logging
from collections.abc import Iterator

import pika
import pytest

from windlass.shared.process.rabbitmq_lines import LOGGER, RabbitmqLines


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    said = io.StringIO()
    handler = logging.StreamHandler(said)
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    handler.addFilter(RabbitmqLines())
    root = logging.getLogger()
    root.addHandler(handler)
    logging.getLogger(LOGGER).setLevel(logging.INFO)
    yield said
    root.removeHandler(handler)


def consumer(queue: str) -> logging.Logger:
    return logging.getLogger(f"dramatiq.worker.ConsumerThread({queue})")


def connected(queue: str) -> None:
    logging.getLogger(LOGGER).info("connected", extra={"connection": queue})


def test_an_outage_is_two_lines(lines: io.StringIO) -> None:
    queues = ("probe.probe", "media.leonardo", "agent.local")
    for queue in queues:
        connected(queue)
    assert lines.getvalue() == "", "as everything starts there is nothing to tell"
    for _ in range(5):
        for queue in queues:
            consumer(queue).critical("Consumer encountered a connection error: %s", "refused")
    for queue in queues[:2]:
        connected(queue)
    consumer(queues[0]).critical("Consumer encountered a connection error: %s", "refused")  # one that was slow to fail
    assert (
        lines.getvalue() == "WARNING rabbitmq: no connection to RabbitMQ (refused); trying again until there is one\n"
    )
    for queue in queues:
        connected(queue)
    _, back = lines.getvalue().splitlines()
    assert back == "INFO rabbitmq: connected to RabbitMQ again, after 0 s"


def test_each_outage_is_told(lines: io.StringIO) -> None:
    for _ in range(2):
        logging.getLogger(LOGGER).warning("reset")
        logging.getLogger(LOGGER).info("connected")
    assert [line.split()[2] for line in lines.getvalue().splitlines()] == ["no", "connected", "no", "connected"]


def test_what_the_client_s_own_state_led_it_to_is_of_the_connection(lines: io.StringIO) -> None:
    try:
        pika.URLParameters("amqp://somewhere?heartbeat=soon")
    except ValueError:
        consumer("probe.probe").critical("Consumer encountered an unexpected error.", exc_info=True)
    assert lines.getvalue().startswith("WARNING rabbitmq: no connection to RabbitMQ (")
    assert "Traceback" not in lines.getvalue()


def test_what_is_no_connection_s_fault_is_told_as_it_is(lines: io.StringIO) -> None:
    said = "Consumer encountered an unexpected error."
    consumer("probe.probe").critical(said, exc_info=KeyError("a mistake of ours"))
    consumer("probe.probe").critical(said, exc_info=ConnectionResetError("cut"))
    assert "KeyError: 'a mistake of ours'" in lines.getvalue()
    assert lines.getvalue().endswith(
        "WARNING rabbitmq: no connection to RabbitMQ (cut); trying again until there is one\n"
    )
