"""Workflows and approvals for asyncio; what is said stands in `calls.py` and `watching.py`."""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from typing import Unpack

from windlass.client.options import TaskId
from windlass.client.reading import OnInterruption, OnResumption
from windlass.client.speaking import AsyncSpeaker
from windlass.client.task import Task
from windlass.client.workflows import calls
from windlass.client.workflows.composing import Composition
from windlass.client.workflows.documents import Asked, Retry, Workflow
from windlass.client.workflows.graph import documents_of
from windlass.client.workflows.options import NewWorkflowTask, WorkflowFilter, WorkflowHead, WorkflowId
from windlass.client.workflows.watching import WorkflowMessage, WorkflowReading, WorkflowWatchEvent, typed, wait


class AsyncWorkflows:
    """Graphs of tasks: `client.workflows`, with `await`; `client.workflow(name)` writes one task by task."""

    def __init__(self, client: AsyncSpeaker) -> None:
        self._client = client

    async def submit(
        self, name: str, tasks: Composition | Iterable[NewWorkflowTask], **head: Unpack[WorkflowHead]
    ) -> Workflow:
        """The workflow, stored for good, all of it or nothing. Repeated by itself until that is certain, and stored
        once however often. `tasks` are what `|` and `group` make, or up to 1,000 as the API takes them."""
        return await self._client.perform(calls.submit(name, documents_of(tasks), head))

    def list(self, *, page_size: int = 200, **filters: Unpack[WorkflowFilter]) -> AsyncIterator[Workflow]:
        """Newest first, page after page, without nodes and edges."""
        return self._client.items_of(calls.list_workflows(filters, page_size))

    async def get(self, workflow_id: WorkflowId) -> Workflow:
        return await self._client.perform(calls.get(workflow_id))

    async def wait(self, workflow_id: WorkflowId, *, timeout: float | None = None) -> Workflow:
        """The workflow when nothing of it goes on by itself: at its end, in whatever way, or when it is escalated;
        WorkflowTimeout when neither has come in time."""
        return await self._client.hold(wait(workflow_id, timeout, self._client.patience))

    async def resume(self, workflow_id: WorkflowId, *, retry: Retry = "failed", reason: str | None = None) -> Workflow:
        """Lets an escalated workflow go on. `retry` says what gets a new life: what failed with what it had buried,
        also what was cancelled behind it, or nothing. What has completed is never run again."""
        return await self._client.perform(calls.resume(workflow_id, retry, reason))

    async def cancel(self, workflow_id: WorkflowId, *, reason: str | None = None) -> Workflow:
        """What waits is cancelled at once, what runs when its work has stopped: `wait` for that."""
        return await self._client.perform(calls.cancel(workflow_id, reason))

    async def watch(
        self,
        workflow_id: WorkflowId,
        *,
        after: str | None = None,
        on_interruption: OnInterruption | None = None,
        on_resumption: OnResumption | None = None,
    ) -> AsyncGenerator[WorkflowWatchEvent, None]:
        """The workflow as it is, then every change of it and of its tasks' progress until its end, over as many
        connections as it takes; or all that came after the event with the cursor `after`. It goes on while the
        workflow is escalated."""
        messages = self.messages(workflow_id, after=after, on_interruption=on_interruption, on_resumption=on_resumption)
        async with contextlib.aclosing(messages):
            async for message in messages:
                if (event := typed(message)) is not None:
                    yield event

    def messages(
        self,
        workflow_id: WorkflowId,
        *,
        after: str | None = None,
        on_interruption: OnInterruption | None = None,
        on_resumption: OnResumption | None = None,
    ) -> AsyncGenerator[WorkflowMessage, None]:
        """The same as `watch`, as the API sent it."""
        reading = WorkflowReading(workflow_id, after, self._client.patience)
        return self._client.follow(reading, on_interruption, on_resumption)


class AsyncApprovals:
    """Tasks that wait for a person's word: `client.approvals`, with `await`."""

    def __init__(self, client: AsyncSpeaker) -> None:
        self._client = client

    def list(self, *, page_size: int = 200) -> AsyncIterator[Asked]:
        """The oldest first."""
        return self._client.items_of(calls.approvals(page_size))

    async def approve(self, task_id: TaskId, *, comment: str | None = None) -> Task:
        """Lets it start. AlreadyDecided where somebody was quicker."""
        return await self._client.perform(calls.approve(task_id, comment))

    async def reject(self, task_id: TaskId, *, comment: str | None = None) -> Task:
        """Cancels it; what depends on it is buried."""
        return await self._client.perform(calls.reject(task_id, comment))
