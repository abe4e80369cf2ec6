"""A claim that fails for a reason nobody thought of is told; and the task is not lost."""

import json
from typing import Any

from tests.support.installation import Windlass
from tests.support.servers.databases import execute
from tests.support.waiting import wait_until


def errors(windlass: Windlass) -> list[dict[str, Any]]:
    """What is just being written is no line yet."""
    whole = [line for line in windlass.log().splitlines(keepends=True) if line.endswith("\n")]
    lines = [json.loads(line) for line in whole if line.startswith("{")]
    return [line for line in lines if line["level"] in {"error", "critical"}]


def test_a_claim_that_fails_is_logged_and_its_task_runs_later(stopped_windlass: Windlass, database_url: str) -> None:
    windlass = stopped_windlass
    for service in ("api", "dispatcher"):
        windlass.start(service)
    windlass.start("actors", WINDLASS_LOG_FORMAT="json")
    windlass.wait_until_answering()
    execute(database_url, "ALTER TABLE tasks ADD CONSTRAINT a_fault CHECK (status <> 'running') NOT VALID")
    task_id = windlass.client.submit()["task_id"]
    told = wait_until("the failed claim is told", lambda: errors(windlass))
    assert all("could not be claimed" in line["message"] for line in told), "and by nobody else"
    assert "a_fault" in json.dumps(told[0]), "with what went wrong"
    execute(database_url, "ALTER TABLE tasks DROP CONSTRAINT a_fault")
    assert windlass.client.finished(task_id)["status"] == "completed"
