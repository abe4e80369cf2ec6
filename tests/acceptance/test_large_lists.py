"""A page of any list ends at eight megabytes, and an api needs little more memory than that to answer it."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.support.an_api import an_api
from tests.support.installation import Client, Windlass
from tests.support.servers.databases import execute
from tests.support.servers.private_servers import Servers

LARGEST_PAGE_BYTES = 8_000_000
NUMBER = 12
TASKS_WITH_RESULTS = """
UPDATE tasks SET status = 'completed', completed_at = now(), updated_at = now(),
                 result = jsonb_build_object('text', repeat('a', 4000000))
WHERE actor = 'probe'
"""
EVENTS = """
INSERT INTO task_events (task_id, seq, type, at, attempt, data)
SELECT task_id, 1 + n, 'output', now(), 1, jsonb_build_object('text', repeat('b', 60000))
FROM tasks, generate_series(1, 200) AS n WHERE actor = 'summarize';
UPDATE tasks SET last_seq = 201 WHERE actor = 'summarize'
"""
PROJECT_EVENTS = """
INSERT INTO project_events (project_id, seq, type, at, data)
SELECT project_id, 1000 + n, 'edit', now(), jsonb_build_object('given', repeat('c', 900000))
FROM projects, generate_series(1, 24) AS n
"""


@pytest.fixture(scope="module")
def windlass(servers: Servers, migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Windlass]:
    with an_api(servers, migrated_template, tmp_path_factory.mktemp("lists")) as windlass:
        client = windlass.client
        client.submit_many([{"tags": ["large"]} for _ in range(NUMBER)])
        execute(windlass.environment["WINDLASS_DATABASE_URL"], TASKS_WITH_RESULTS)
        yield windlass


@pytest.fixture
def client(windlass: Windlass) -> Client:
    return windlass.client


def pages(client: Client, path: str, **query: Any) -> Iterator[list[dict[str, Any]]]:
    position = "after" if path.endswith("/events") else "cursor"
    while True:
        answer = client.http.get(path, params=query)
        assert answer.status_code == 200, answer.text[:500]
        assert len(answer.content) < LARGEST_PAGE_BYTES + 1000, path
        page = answer.json()
        assert page["items"] or "next_cursor" not in page
        yield page["items"]
        if "next_cursor" not in page:
            return
        query[position] = page["next_cursor"]


def memory_peak(windlass: Windlass, *, reset: bool = False) -> int:
    """In megabytes."""
    assert windlass.api is not None
    process = Path(f"/proc/{windlass.api.pid}")
    if reset:
        (process / "clear_refs").write_text("5")
    status = (process / "status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) // 1024


@pytest.mark.parametrize(("path", "query"), [("/api/v1/tasks", {"full": "true"}), ("/api/v1/tasks", {})])
def test_a_page_of_tasks_ends_at_eight_megabytes(
    windlass: Windlass, client: Client, path: str, query: dict[str, str]
) -> None:
    before = memory_peak(windlass, reset=True)
    seen = [task["task_id"] for page in pages(client, path, limit=100, tag="large", **query) for task in page]
    assert len(seen) == len(set(seen)) == NUMBER
    assert seen == sorted(seen, reverse=True)
    assert memory_peak(windlass) - before < 80


def test_dead_letters_are_bounded_too(windlass: Windlass, client: Client) -> None:
    for _ in range(12):
        client.cancel(client.submit(payload={"result": "p" * 900_000}, tags=["dead"])["task_id"])
    execute(
        windlass.environment["WINDLASS_DATABASE_URL"],
        'UPDATE tasks SET status = \'dead\', error = \'{"type": "X", "message": "m"}\' WHERE \'dead\' = ANY (tags)',
    )
    found = list(pages(client, "/api/v1/queues/dlq", limit=100, tag="dead"))
    assert [len(page) for page in found] == [8, 4]


def test_a_history_of_outputs_that_compress_well_is_bounded(windlass: Windlass, client: Client) -> None:
    task_id = client.http.post("/api/v1/tasks/summarize", json={"content": "c", "delay_seconds": 3600}).json()[
        "task_id"
    ]
    execute(windlass.environment["WINDLASS_DATABASE_URL"], EVENTS)
    before = memory_peak(windlass, reset=True)
    seen = [event["seq"] for page in pages(client, f"/api/v1/tasks/{task_id}/events", limit=1000) for event in page]
    assert seen == list(range(1, 202))
    with client.http.stream("GET", f"/api/v1/tasks/{task_id}/stream") as stream:
        told = sum(1 for _ in islice(lines_of(stream, "id:"), 201))
    assert told == 201
    assert memory_peak(windlass) - before < 60


def test_what_projects_hold_is_bounded(windlass: Windlass, client: Client) -> None:
    project_id = client.http.post("/api/v1/projects", json={"name": "large"}).json()["project_id"]
    for number in range(12):
        item = {"title": f"i{number}", "actor": "probe", "payload": {"result": "i" * 900_000}}
        client.http.post(f"/api/v1/projects/{project_id}/items", json={"items": [item]}).raise_for_status()
    found = [
        item["title"] for page in pages(client, f"/api/v1/projects/{project_id}/items", limit=100) for item in page
    ]
    assert found == [f"i{number}" for number in range(12)]
    execute(windlass.environment["WINDLASS_DATABASE_URL"], PROJECT_EVENTS)
    before = memory_peak(windlass, reset=True)
    seen = [each["seq"] for page in pages(client, f"/api/v1/projects/{project_id}/events") for each in page]
    assert len(seen) == len(set(seen))
    assert seen[-1] == 1024
    assert memory_peak(windlass) - before < 80


def lines_of(stream: Any, beginning: str) -> Iterator[str]:
    return (line for line in stream.iter_lines() if line.startswith(beginning))
