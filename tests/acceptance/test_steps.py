"""`kill -9` of the worker inside each step and between any two: no finished step runs again, and all is told."""

from pathlib import Path

from tests.support.installation import Windlass

MORTAL_ACTOR = Path(__file__).parent / "mortal_actor"
NUMBERS = (1, 2, 3, 4)
PLACES = [(where, number) for number in NUMBERS for where in ("in", "after")]


def test_wherever_the_worker_is_killed_no_finished_step_runs_again(stopped_windlass: Windlass) -> None:
    windlass, directory = stopped_windlass, stopped_windlass.directory
    for service in ("api", "dispatcher", "janitor", "orchestrator"):
        windlass.start(service)
    several = str(len(PLACES))
    windlass.actors = windlass.start("actors", PYTHONPATH=str(MORTAL_ACTOR), WINDLASS_ACTOR_THREADS=several)
    windlass.wait_until_healthy()
    client = windlass.client
    ids = client.submit_many(
        [
            {"payload": {"result": {"directory": str(directory), "place": f"{where} {number}", "places": len(PLACES)}}}
            for where, number in PLACES
        ]
    )
    for (where, number), task_id in zip(PLACES, ids, strict=True):
        task = client.finished(task_id)
        assert (task["status"], task["result"]) == ("completed", {"done": [10, 20, 30, 40]}), task["error"]
        assert task["attempt"] == 2
        assert client.story(task_id).count("complete") == 1
        # What was cut off inside is begun once more; what has finished never is.
        begun = sorted([*NUMBERS, *([number] if where == "in" else [])])
        assert (directory / f"work {where} {number}").read_text().splitlines() == [str(each) for each in begun]
        steps = [(f"step {each}", 1 if each < number or (where, each) == ("after", number) else 2) for each in NUMBERS]
        assert [(each["name"], each["attempt"]) for each in task["steps"]] == steps

    told = [event for event in client.events(task_id) if event["type"] == "step"]
    assert [(each["data"]["name"], each["attempt"]) for each in told] == steps
    with client.stream(task_id) as events:
        streamed = [data for _seq, name, data in events if name == "step"]
    assert [(each["name"], each["attempt"]) for each in streamed] == steps
    assert all(each.keys() == {"name", "attempt", "elapsed_ms"} for each in streamed), "not what it came to"
