"""What a schedule starts: complete as it was checked, with ids that each start makes anew."""

import re
from collections.abc import Iterator
from itertools import count
from typing import Any
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from windlass.shared.schedules.words import Kind

A_UUID = re.compile(r'"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"')


def fresh(kind: str, prepared: dict[str, Any]) -> dict[str, Any]:
    """What one start stores. A project is started by its own id."""
    if kind == Kind.TASK:
        return {**prepared, "task_id": str(uuid7())}
    return _with_ids_of_its_own(prepared, _new_ids()) if kind == Kind.WORKFLOW else prepared


def is_the_same(kind: str, one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether both start the same: a workflow that is prepared again has other ids."""
    if kind != Kind.WORKFLOW:
        return one == other
    return _with_ids_of_its_own(one, _numbers()) == _with_ids_of_its_own(other, _numbers())


def _numbers() -> Iterator[str]:
    return (str(UUID(int=number)) for number in count(1))


def _new_ids() -> Iterator[str]:
    return (str(uuid7()) for _ in count())


def _with_ids_of_its_own(prepared: dict[str, Any], ids: Iterator[str]) -> dict[str, Any]:
    """In their order: whoever waits has the larger one, and locks follow it. What is no id of the workflow's own, as
    that of a task which one waits for, or something in a payload that looks so, stays."""
    own = [prepared["workflow"]["workflow_id"]]
    own += sorted(
        [node["node_id"] for node in prepared["nodes"]] + [each["task_id"] for each in prepared["submissions"]]
    )
    new = dict(zip(own, ids, strict=False))
    text = msgspec.json.encode(prepared).decode()
    changed: dict[str, Any] = msgspec.json.decode(A_UUID.sub(lambda found: f'"{new.get(found[1], found[1])}"', text))
    return changed
