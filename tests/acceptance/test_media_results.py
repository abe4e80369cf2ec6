"""Where media is found: in a task's result with urls that work today, and in everything that a workflow run made."""

import json
from typing import Any
from uuid import UUID

from tests.support.an_api import new_key
from tests.support.engine.media import a_content, generated, ordered
from tests.support.engine.store import Engine
from tests.support.event_reader import Event
from tests.support.installation import KEY, Windlass
from tests.support.media_api import api, storage_of, without_key
from tests.support.stream_api import ANN, names, stories, story_of, with_workers
from windlass import AsyncClient, Client

__all__ = ["api"]


def works(urls: list[str], data: bytes) -> bool:
    return [without_key(url).content for url in urls] == [data]


@with_workers
async def test_wherever_a_task_is_shown_its_urls_are_signed_anew(api: Windlass, engine: Engine) -> None:
    async with stories(api.port) as everybody_s:
        made = await generated(engine, [a_content(b"a file")], storage=storage_of(api))
        told_to_all = await until_complete(everybody_s)
    task_id = str(made.attempt.task_id)
    task = api.client.get(task_id)
    async with story_of(api.port, UUID(task_id)) as story:
        told = await story.all()
    assert names(told)[-1] == "complete"
    (listed,) = [each for each in api.client.tasks(full="true") if each["task_id"] == task_id]
    shown = [task, api.client.get(task_id, wait=0), listed, told[-1].data, told_to_all.data]
    for each in shown:
        assert set(each["result"]) == {"generation_id", "content_ids", "urls"}
        assert works(each["result"]["urls"], b"a file"), each
    assert "result" not in api.client.tasks()[0]


async def until_complete(stream: Any) -> Event:
    while (event := await stream.event()).name != "complete":
        pass
    told: Event = event
    return told


@with_workers
async def test_nobody_gets_a_foreign_file_signed_by_naming_it_in_a_result(api: Windlass, engine: Engine) -> None:
    secret_file = a_content(b"ben's")
    await generated(engine, [secret_file], storage=storage_of(api), task={"user_id": "ben"})
    result = {"generation_id": "x", "content_ids": [str(secret_file.content_id)], "urls": ["as printed"]}
    attempt = await engine.running(actor="agent", user_id="ann")
    assert await engine.finish(attempt, result=result) == "completed"
    assert api.client.with_key(ANN).get(str(attempt.task_id))["result"] == result


@with_workers
async def test_a_workflow_run_s_media_are_listed_newest_first(api: Windlass, engine: Engine) -> None:
    task = {"workflow_run_id": "run-1", "interaction_id": "talk-1"}
    files = [a_content(b"one", provider_url="https://cdn.example/1"), a_content(b"two", extension="webp")]
    older = await generated(
        engine, files, storage=storage_of(api), task=task, job_id="job-7", prompt_id="p-1", source_data={"page": 3}
    )
    newer = await ordered(engine, task=task, request={"prompt": "still under way"})
    await generated(engine, [a_content(b"x")], storage=storage_of(api), task={"workflow_run_id": "run-2"})
    answer = api.client.http.get("/api/v1/workflow-runs/run-1/media")
    first, second = answer.json()["items"]
    assert set(answer.json()) == {"items"}
    assert (first["generation_id"], first["status"], first["contents"]) == (str(newer.generation_id), "intended", [])
    assert first["request"] == {"prompt": "still under way"}
    contents = second.pop("contents")
    assert second.pop("created_at") < first["created_at"]
    assert second == {
        "generation_id": str(older.generation_id),
        "task_id": str(older.attempt.task_id),
        "provider": "probe",
        "operation": "txt2img",
        "status": "completed",
        "provider_job_id": "job-7",
        "request": {"prompt": "a lighthouse"},
        "source_data": {"page": 3},
        "prompt_id": "p-1",
        "workflow_run_id": "run-1",
        "interaction_id": "talk-1",
    }
    with Client(api.url, KEY) as client:
        (_, generation) = client.workflow_run_media("run-1")
    assert (generation.status, generation.source_data) == ("completed", {"page": 3})
    assert [without_key(file.url).content for file in generation.contents] == [b"one", b"two"]
    assert [without_key(each.pop("url")).content for each in contents] == [b"one", b"two"]
    assert contents == [
        {
            "content_id": str(file.content_id), "index": index, "media_type": "image/png",
            "extension": file.extension, "size_bytes": 3, "provider_url": file.provider_url,
        }
        for index, file in enumerate(files)
    ]  # fmt: skip


@with_workers
async def test_a_user_sees_its_own_media_of_a_run_and_nothing_of_the_provider_s(api: Windlass, engine: Engine) -> None:
    for user in ("ann", "ben"):
        file = a_content(user.encode(), provider_url="https://cdn.example/secret")
        task = {"workflow_run_id": "shared-run", "user_id": user}
        await generated(engine, [file], storage=storage_of(api), task=task, job_id="secret-job")
    viewer = new_key(api.client, "viewer", "eve")

    def seen_with(key: str) -> tuple[int, bool]:
        items = api.client.with_key(key).http.get("/api/v1/workflow-runs/shared-run/media").json()["items"]
        return len(items), "secret" in json.dumps(items)

    assert {key: seen_with(key) for key in (KEY, viewer, ANN)} == {KEY: (2, True), viewer: (2, True), ANN: (1, False)}


@with_workers
async def test_pages_of_a_run_follow_each_other(api: Windlass, engine: Engine) -> None:
    made = [await ordered(engine, task={"workflow_run_id": "long run"}) for _ in range(5)]
    found: list[str] = []
    cursor: dict[str, str] = {}
    sizes = []
    while True:
        answer = api.client.http.get("/api/v1/workflow-runs/long%20run/media", params={"limit": 2, **cursor})
        page = answer.raise_for_status().json()
        sizes.append(len(page["items"]))
        found += [item["generation_id"] for item in page["items"]]
        if "next_cursor" not in page:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert sizes == [2, 2, 1]
    assert found == [str(each.generation_id) for each in reversed(made)]
    with Client(api.url, KEY) as client:
        assert [each.generation_id for each in client.workflow_run_media("long run", page_size=2)] == found
    async with AsyncClient(api.url, KEY) as client:
        assert [each.generation_id async for each in client.workflow_run_media("long run", page_size=2)] == found
