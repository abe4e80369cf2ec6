"""RabbitMQ takes a channel away from a consumer that does not ack in time: long tasks do not mind."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.installation import Windlass
from tests.support.servers.databases import migrate
from tests.support.servers.private_servers import Servers, new_directory, running_servers

# Checked every second instead of every minute, so that a test can wait for it.
IMPATIENT = "[{rabbit, [{consumer_timeout, 6000}, {channel_tick_interval, 1000}]}].\n"


@pytest.fixture
def impatient_servers() -> Iterator[Servers]:
    directory = new_directory()
    (directory / "rabbitmq").mkdir()
    (directory / "rabbitmq" / "advanced.config").write_text(IMPATIENT)
    with running_servers(directory) as servers:
        yield servers
    shutil.rmtree(directory)


def test_tasks_longer_than_the_consumer_timeout_complete_once(impatient_servers: Servers, tmp_path: Path) -> None:
    migrate(impatient_servers.database_url)
    windlass = Windlass(impatient_servers.database_url, impatient_servers.amqp_url, tmp_path)
    try:
        windlass.start_all()
        client = windlass.client
        ids = client.submit_many([{"payload": {"seconds": 16}} for _ in range(3)])
        ids += client.submit_many([{"payload": {"seconds": 1}} for _ in range(8)])
        for task_id in ids:
            task = client.finished(task_id)
            assert (task["status"], task["attempt"], task["retry_count"]) == ("completed", 1, 0)
            assert client.story(task_id).count("complete") == 1
        assert "no connection to RabbitMQ" not in windlass.log(), "no doorbell is kept that long"
    finally:
        windlass.stop()
