"""The graphs of a storm, thrown by dice: each has diamonds, a list that becomes tasks and their join, people who are
asked, and tasks that go on after a failure."""

import random
from typing import Any

TASKS = 20
"""Of one graph, with those that its list becomes."""
KEPT = {"max_retries": 20}
"""What is meant to complete does so through everything that is done to its workers."""


class Graph:
    """The body of one workflow while it is made."""

    def __init__(self, dice: random.Random, mark: str) -> None:
        self._dice = dice
        self._mark = mark
        self.tasks: list[dict[str, Any]] = []
        self.size = 0

    def body(self, number: int, elsewhere: str | None) -> dict[str, Any]:
        """`elsewhere` is a task of another workflow, which one of this may wait for."""
        dice = self._dice
        start = self._diamond("d", [])
        joined = self._list_and_join("pages", [start])
        asked = self._asked([joined])
        self._after_failure([start])
        while self.size < TASKS:
            after = dice.sample([start, joined, asked, *(task["key"] for task in self.tasks)], 2)
            loose = [{"key": key, "on": "ended"} if dice.random() < 0.4 else key for key in dict.fromkeys(after)]
            if elsewhere is not None and dice.random() < 0.2:
                loose.append({"key": elsewhere, "on": "ended"} if dice.random() < 0.5 else elsewhere)
            self._task(f"t{self.size}", loose)
        threshold = dice.choice([None, 1, 1, 2, 3])
        return {"name": f"storm {number}", "tags": ["storm"], "tasks": self.tasks, "failure_threshold": threshold}

    def _task(self, key: str, after: list[Any], said: Any = None, **fields: Any) -> str:
        mark = f"{self._mark}-{key}"
        payload = {"seconds": round(self._dice.uniform(0.0, 0.6), 2), "result": mark if said is None else said}
        task = {"key": key, "actor": "probe", "payload": payload, "depends_on": after, **KEPT, **fields}
        if "payload" not in fields and said is None and self._dice.random() < 0.12:
            payload |= ending(self._dice)
        self.tasks.append(task)
        self.size += 1
        return key

    def _diamond(self, name: str, after: list[Any]) -> str:
        top = self._task(f"{name}-top", after)
        left, right = self._task(f"{name}-left", [top]), self._task(f"{name}-right", [top])
        return self._task(f"{name}-end", [left, right], {"$from": left, "path": "/echo"})

    def _list_and_join(self, name: str, after: list[Any]) -> str:
        """Some of its tasks fail in their first life; the join has all results, in order."""
        elements = [f"{self._mark}-{name}-{number}" for number in range(self._dice.choice([0, 1, 4, 5, 6]))]
        split = self._task(f"{name}-list", after, elements)
        each: dict[str, Any] = {"seconds": round(self._dice.uniform(0, 0.4), 2), "result": {"$item": True}}
        if self._dice.random() < 0.3:
            each |= ending(self._dice)
        self.tasks.append(
            {
                "key": name,
                "actor": "probe",
                "for_each": {"$from": split, "path": "/echo"},
                "depends_on": [],
                "payload": each,
                **KEPT,
            }
        )
        self.size += len(elements)
        join: list[Any] = [{"key": name, "on": "ended"} if self._dice.random() < 0.3 else name]
        return self._task(f"{name}-join", join, {"$from": name})

    def _asked(self, after: list[Any]) -> str:
        expires = {"expires_in_seconds": 3} if self._dice.random() < 0.15 else {}
        first = self._task("asked", after, approval={"message": "May it go on?", **expires})
        agent = {"subagent_type": "demo", "prompt": f"{self._mark} goes on.", "params": {"seconds": 0.5, "steps": 1}}
        self._task("asked-agent", [first], actor="agent", payload=agent)
        return self._task("asked-too", [first], approval={"message": "And this?"})

    def _after_failure(self, after: list[Any]) -> None:
        failing = {"seconds": 0.1, "result": f"{self._mark}-fails", "outcome": "permanent"}
        if self._dice.random() < 0.6:
            failing["fail_times"] = 1
        fails = self._task("fails", after, payload=failing)
        self._task("buried", [fails])
        self._task("clears-up", [{"key": fails, "on": "ended"}])


def ending(dice: random.Random) -> dict[str, Any]:
    """In the first attempts at it, or always."""
    if dice.random() < 0.5:
        return {"outcome": "transient", "error_type": "NetworkTimeout", "fail_times": 1}
    return {"outcome": "permanent", **({"fail_times": dice.randint(1, 2)} if dice.random() < 0.7 else {})}
