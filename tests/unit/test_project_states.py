"""The states of projects, runs and items against the contract."""

import pytest

from windlass.shared.project_states import (
    ITEM,
    QUEUE,
    RUN,
    ItemState,
    QueueState,
    RunState,
    StopReason,
)
from windlass.shared.store.projects import EVENT_NAMES

CONTRACT: dict[str, dict[str, tuple[set[str], str]]] = {
    "queue": {
        "start": ({"idle"}, "running"),
        "advance": ({"running"}, "running"),
        "stop": ({"running"}, "stopping"),
        "force": ({"running", "stopping"}, "stopping"),
        "finish": ({"running", "stopping"}, "idle"),
    },
    "run": {
        "open": (set(), "running"),
        "complete": ({"running"}, "completed"),
        "bury": ({"running"}, "dead"),
        "cancel": ({"running"}, "cancelled"),
        "withdraw": ({"running"}, "withdrawn"),
        "lose": ({"running"}, "lost"),
    },
    "item": {
        "add": (set(), "waiting"),
        "fulfil": ({"waiting", "failed"}, "done"),
        "fail": ({"waiting", "failed"}, "failed"),
        "return": ({"waiting", "failed"}, "waiting"),
        "skip": ({"waiting", "failed", "skipped"}, "skipped"),
        "requeue": ({"waiting", "done", "failed", "skipped"}, "waiting"),
    },
}
"""By hand: from where, to where."""

MACHINES = {"queue": QUEUE, "run": RUN, "item": ITEM}


def test_the_words_are_the_contract_s() -> None:
    assert set(QueueState) == {"idle", "running", "stopping"}
    assert set(RunState) == {"running", "completed", "dead", "cancelled", "withdrawn", "lost"}
    assert set(ItemState) == {"waiting", "running", "done", "failed", "skipped"}
    assert set(StopReason) == {"finished", "stopped", "forced", "failed"}


@pytest.mark.parametrize("machine", MACHINES)
def test_every_change_goes_where_the_contract_says(machine: str) -> None:
    ways = {name: (set(change.sources), change.target) for name, change in MACHINES[machine].items()}
    assert ways == CONTRACT[machine]


def test_every_change_has_a_name_in_the_stream() -> None:
    assert {*QUEUE, *RUN, *ITEM} <= set(EVENT_NAMES)
    assert set(EVENT_NAMES.values()) == {"status", "run", "item"}
