"""`with client.workflow("report") as flow:`: a workflow that is written task by task, and submitted at its end."""

from collections.abc import Mapping
from typing import Any, Self, TypeVar, Unpack, cast

from windlass.client.call import Call
from windlass.client.declared import Declared, asked_for
from windlass.client.options import AskFirst
from windlass.client.speaking import AsyncSpeaker, Speaker
from windlass.client.workflows import calls
from windlass.client.workflows.composing import Composition, Signature, Waits, composed, signature
from windlass.client.workflows.documents import Workflow
from windlass.client.workflows.graph import Graph
from windlass.client.workflows.options import NodeOptions, WorkflowHead

C = TypeVar("C", bound=Composition)


class Writing:
    """What both builders are: tasks are written down, and nothing is sent before the block's end."""

    def __init__(self, name: str, head: WorkflowHead) -> None:
        self._name = name
        self._head = head
        self._graph = Graph()
        self._submitted: Workflow | None = None

    def task(
        self,
        actor: str | Declared[Any],
        payload: Mapping[str, Any] | None = None,
        *,
        key: str | None = None,
        depends_on: Waits = (),
        for_each: Any = None,
        approval: str | AskFirst | None = None,
        **options: Any,
    ) -> Signature:
        """A task of the workflow: as `submit` takes it, by a `key` of its own, which is else made of its actor's name.

        Its payload may hold the `result` of tasks before it, whole or in parts, which it then depends on; `depends_on`
        names more of them, and `other.ended` waits for an end in any way. `for_each=split.result["parts"]` makes it one
        task for each element, with `ITEM` and `INDEX` in its payload. `approval` is what a person is asked first.
        """
        clashes = {"key": key, "depends_on": depends_on or None, "for_each": for_each, "approval": approval}
        name, whole, given = asked_for(actor, (payload,), options, **clashes)
        added = signature(
            name,
            whole,
            key=key or self._graph.free_key(name),
            depends_on=depends_on,
            for_each=for_each,
            approval=approval,
            **cast(NodeOptions, given),  # what a task of a workflow cannot have the API names
        )
        self._graph.add(added)
        return added

    def add(self, composition: C | Declared[Any]) -> C:
        """What `|` and `group` have made, as a part of this workflow."""
        added = composed(composition)
        self._graph.add(added)
        return added  # type: ignore[return-value] # an actor alone has become a signature

    @property
    def workflow(self) -> Workflow:
        """As it was stored at the end of the block."""
        if self._submitted is None:
            raise RuntimeError(f"the workflow {self._name!r} is not submitted before the end of its `with` block")
        return self._submitted

    @property
    def workflow_id(self) -> str:
        return self.workflow.workflow_id

    def _call(self) -> Call[Workflow]:
        return calls.submit(self._name, self._graph.documents(), self._head)


class WorkflowBuilder(Writing):
    def __init__(self, client: Speaker, name: str, **head: Unpack[WorkflowHead]) -> None:
        super().__init__(name, head)
        self._client = client

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_error: object) -> None:
        """An error in the block submits nothing."""
        if kind is None:
            self._submitted = self._client.perform(self._call())


class AsyncWorkflowBuilder(Writing):
    def __init__(self, client: AsyncSpeaker, name: str, **head: Unpack[WorkflowHead]) -> None:
        super().__init__(name, head)
        self._client = client

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, *_error: object) -> None:
        """An error in the block submits nothing."""
        if kind is None:
            self._submitted = await self._client.perform(self._call())
