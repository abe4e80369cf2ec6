"""Workflows and approvals for programs that wait for their answers."""

from collections.abc import Generator, Iterable, Iterator
from typing import Unpack

from windlass.client.options import TaskId
from windlass.client.reading import OnInterruption, OnResumption
from windlass.client.speaking import Speaker
from windlass.client.task import Task
from windlass.client.workflows import calls
from windlass.client.workflows.composing import Composition
from windlass.client.workflows.documents import Asked, Retry, Workflow
from windlass.client.workflows.graph import documents_of
from windlass.client.workflows.options import NewWorkflowTask, WorkflowFilter, WorkflowHead, WorkflowId
from windlass.client.workflows.watching import WorkflowMessage, WorkflowReading, WorkflowWatchEvent, typed, wait


class Workflows:
    """Graphs of tasks: `client.workflows`; `client.workflow(name)` writes one task by task."""

    def __init__(self, client: Speaker) -> None:
        self._client = client

    def submit(
        self, name: str, tasks: Composition | Iterable[NewWorkflowTask], **head: Unpack[WorkflowHead]
    ) -> Workflow:
        """The workflow, stored for good, all of it or nothing. Repeated by itself until that is certain, and stored
        once however often. `tasks` are what `|` and `group` make, or up to 1,000 as the API takes them."""
        return self._client.perform(calls.submit(name, documents_of(tasks), head))

    def list(self, *, page_size: int = 200, **filters: Unpack[WorkflowFilter]) -> Iterator[Workflow]:
        """Newest first, page after page, without nodes and edges."""
        return self._client.items_of(calls.list_workflows(filters, page_size))

    def get(self, workflow_id: WorkflowId) -> Workflow:
        return self._client.perform(calls.get(workflow_id))

    def wait(self, workflow_id: WorkflowId, *, timeout: float | None = None) -> Workflow:
        """The workflow when nothing of it goes on by itself: at its end, in whatever way, or when it is escalated;
        WorkflowTimeout when neither has come in time."""
        return self._client.hold(wait(workflow_id, timeout, self._client.patience))

    def resume(self, workflow_id: WorkflowId, *, retry: Retry = "failed", reason: str | None = None) -> Workflow:
        """Lets an escalated workflow go on. `retry` says what gets a new life: what failed with what it had buried,
        also what was cancelled behind it, or nothing. What has completed is never run again."""
        return self._client.perform(calls.resume(workflow_id, retry, reason))

    def cancel(self, workflow_id: WorkflowId, *, reason: str | None = None) -> Workflow:
        """What waits is cancelled at once, what runs when its work has stopped: `wait` for that."""
        return self._client.perform(calls.cancel(workflow_id, reason))

    def watch(
        self,
        workflow_id: WorkflowId,
        *,
        after: str | None = None,
        on_interruption: OnInterruption | None = None,
        on_resumption: OnResumption | None = None,
    ) -> Generator[WorkflowWatchEvent, None, None]:
        """The workflow as it is, then every change of it and of its tasks' progress until its end, over as many
        connections as it takes; or all that came after the event with the cursor `after`. It goes on while the
        workflow is escalated."""
        for message in self.messages(
            workflow_id, after=after, on_interruption=on_interruption, on_resumption=on_resumption
        ):
            if (event := typed(message)) is not None:
                yield event

    def messages(
        self,
        workflow_id: WorkflowId,
        *,
        after: str | None = None,
        on_interruption: OnInterruption | None = None,
        on_resumption: OnResumption | None = None,
    ) -> Generator[WorkflowMessage, None, None]:
        """The same as `watch`, as the API sent it."""
        reading = WorkflowReading(workflow_id, after, self._client.patience)
        return self._client.follow(reading, on_interruption, on_resumption)


class Approvals:
    """Tasks that wait for a person's word: `client.approvals`."""

    def __init__(self, client: Speaker) -> None:
        self._client = client

    def list(self, *, page_size: int = 200) -> Iterator[Asked]:
        """The oldest first."""
        return self._client.items_of(calls.approvals(page_size))

    def approve(self, task_id: TaskId, *, comment: str | None = None) -> Task:
        """Lets it start. AlreadyDecided where somebody was quicker."""
        return self._client.perform(calls.approve(task_id, comment))

    def reject(self, task_id: TaskId, *, comment: str | None = None) -> Task:
        """Cancels it; what depends on it is buried."""
        return self._client.perform(calls.reject(task_id, comment))
