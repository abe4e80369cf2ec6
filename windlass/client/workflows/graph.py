"""A graph of tasks to be under the keys that they have in it, and the document that it is submitted as."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from windlass.client.calls import without_none
from windlass.client.workflows.composing import Composition, Ended, Signature
from windlass.client.workflows.references import Source, sources_in, written


class Graph:
    def __init__(self) -> None:
        self._keys: dict[Signature, str] = {}
        self._filled: dict[Signature, dict[str, Any]] = {}
        self._waits: dict[Signature, list[Signature]] = {}

    def add(self, composition: Composition) -> None:
        """What is in it already stays as it is: a task may be a part of several compositions."""
        for each in composition.signatures():
            if each not in self._keys:
                self._keys[each] = self._key_for(each)
        for link in composition.links():
            self._waits.setdefault(link.later, []).extend(link.earlier.ends)
            filled = self._filled.setdefault(link.later, {})
            wanted = next((each for each in link.later.required if each not in {**link.later.payload, **filled}), None)
            if wanted is not None:
                filled[wanted] = link.earlier.outcome

    def free_key(self, actor: str) -> str:
        """After its actor, and numbered where there are several."""
        number, taken = 1, set(self._keys.values())
        while (key := actor if number == 1 else f"{actor}-{number}") in taken:
            number += 1
        return key

    def documents(self) -> list[dict[str, Any]]:
        return [self._document(each) for each in self._keys]

    def _key_for(self, task: Signature) -> str:
        if task.key is None:
            return self.free_key(task.actor)
        if task.key in self._keys.values():
            raise ValueError(f"the key {task.key} is there twice")
        return task.key

    def _document(self, task: Signature) -> dict[str, Any]:
        payload = {**task.payload, **self._filled.get(task, {})}
        for_each = None if task.for_each is None else task.for_each.list_for_each(self._name_of)
        waits = list(self._entries(task, payload))
        return {
            "key": self._keys[task],
            "actor": task.actor,
            "payload": written(payload, self._name_of),
            **without_none(task.options),
            **({"depends_on": waits} if waits else {}),
            **without_none({"for_each": for_each, "approval": task.approval}),
        }

    def _entries(self, task: Signature, payload: Any) -> Iterator[Any]:
        """What it was told to wait for, then what it was put behind and what it refers to; each once."""
        told = [self._entry(each) for each in task.depends_on]
        yield from told
        seen = {str(each["key"]) if isinstance(each, dict) else each for each in told}
        if task.for_each is not None:
            seen.add(self._name_of(task.for_each.source))
        for source in (*self._waits.get(task, ()), *sources_in(payload)):
            if (name := self._name_of(source)) not in seen:
                seen.add(name)
                yield name

    def _entry(self, wait: Any) -> Any:
        if isinstance(wait, Signature):
            return self._name_of(wait)
        if isinstance(wait, Ended):
            return {"key": self._name_of(wait.task), "on": "ended"}
        return str(wait) if isinstance(wait, UUID) else wait

    def _name_of(self, source: Source) -> str:
        key = self._keys.get(source) if isinstance(source, Signature) else None
        if key is None:
            raise ValueError(f"{source!r} is referred to, and is not in this workflow; `set` has made another of it?")
        return key


def documents_of(tasks: Composition | Iterable[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """As the API takes them."""
    if not isinstance(tasks, Composition):
        return [without_none(each) for each in tasks]
    graph = Graph()
    graph.add(tasks)
    return graph.documents()
