"""What the operators' commands make of the API's answers: a queue's pace, old servers, queues that are broken."""

import pytest

from windlass import Health, Queues
from windlass.client.operations import Component, Queue, Worker
from windlass.client.task import Listing
from windlass.services.cli.commands.top import Look, pace
from windlass.services.cli.commands.workers import workers_table
from windlass.services.cli.doctor.there import broken, numbers_in, versions


def a_look(at: float, **ended: int) -> Look:
    queues = Queues(queues=tuple(Queue(queue=name, ended=number) for name, number in ended.items()))
    return Look(queues, {}, {}, at)


def test_a_queue_s_pace_is_counted_between_two_looks() -> None:
    before, now = a_look(100, probe=10, agent=4), a_look(130, probe=30, agent=3, embed=5)
    assert pace("probe", now, before) == "40"
    assert pace("agent", now, before) == "0", "one was revived"
    assert pace("embed", now, before) == "", "it was not there before"
    assert pace("probe", now, now) == "", "one look tells no pace"


@pytest.mark.parametrize(
    ("postgres", "rabbitmq", "states"),
    [
        ("15.14", "3.10.8", ["ok", "ok"]),
        ("18beta1", "4.1.0-rc.2", ["ok", "ok"]),
        ("14.9", "3.9.27", ["bad", "bad"]),
        (None, None, ["note", "note"]),
    ],
)
def test_a_server_that_is_too_old_is_named_with_its_remedy(
    postgres: str | None, rabbitmq: str | None, states: list[str]
) -> None:
    parts = {"postgres": Component(status="healthy", version=postgres), "broker": Component(status="healthy")}
    if rabbitmq is not None:
        parts["broker"] = Component(status="healthy", version=rabbitmq)
    found = list(versions(Health(status="healthy", components=parts)))
    assert [each.state for each in found] == states
    for finding, version, oldest in zip(found, (postgres, rabbitmq), ("15", "3.10"), strict=True):
        assert version is None or version in finding.detail
        if finding.state == "bad":
            assert finding.remedy == f"upgrade it to {oldest} or newer"


def test_versions_are_read_as_far_as_they_are_numbers() -> None:
    assert [numbers_in(text) for text in ("3.13.7", "16", "unknown")] == [(3, 13, 7), (16,), ()]


def test_a_queue_that_a_worker_cannot_serve_is_told_with_its_reason_and_what_to_do() -> None:
    why = "[actors.translate]: module our_actors needs deepl, which is not installed here"
    new = Worker(worker_id="n", state="active", hostname="new", broken={"translate.translate": why})
    old = Worker(worker_id="o", state="active", hostname="old", queues=("translate.translate",))
    gone = Worker(worker_id="g", state="stopped", hostname="gone", broken={"resize.resize": why})
    (alone,) = broken([new, gone])
    assert (alone.name, alone.state) == ("queue translate.translate", "bad")
    assert alone.detail == f"a worker at new cannot serve it: {why}"
    assert "windlass actors check" in alone.remedy
    table = workers_table(Listing(items=(new, old)))
    assert [row[table.columns.index("CANNOT SERVE")] for row in table.rows] == ["translate.translate", ""]
    (beside,) = broken([new, old, gone])
    assert beside.state == "note", "another serves it"
