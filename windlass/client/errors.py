"""What can go wrong for a client: an answer that is an error, or no answer at all."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windlass.client.task import Task
    from windlass.client.workflows.documents import Workflow


class WindlassError(Exception):
    """Everything that this package raises on purpose."""


class NotConfigured(WindlassError):
    """No address or no key was given, or one that cannot be used."""


class Unreachable(WindlassError):
    """No answer came: nobody listens there, or the connection broke.

    `sent` says whether the request may have arrived; if not, whatever it asked for has not happened.
    """

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class UnreadableAnswer(WindlassError):
    """The answer is not what Windlass says; often it is not Windlass that answers there."""


@dataclass(frozen=True)
class FieldError:
    """One field that was wrong, named by a JSON pointer."""

    pointer: str
    detail: str


class ApiError(WindlassError):
    """An answer that is a problem document (RFC 9457); its class is looked up by `code`, else by `status`."""

    def __init__(  # noqa: PLR0917 - so that a copy can be made from `args`
        self,
        status: int,
        code: str,
        detail: str,
        errors: tuple[FieldError, ...] = (),
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(status, code, detail, errors, request_id, retry_after)
        self.status = status
        self.code = code
        self.detail = detail
        self.errors = errors
        self.request_id = request_id
        self.retry_after = retry_after

    @property
    def repeats_its_fields(self) -> bool:
        """Whether `detail` already contains what is wrong with each field."""
        return all(each.detail in self.detail for each in self.errors)

    def __str__(self) -> str:
        told = () if self.repeats_its_fields else self.errors
        fields = "".join(f"; {each.pointer or '/'}: {each.detail}" for each in told)
        return f"{self.code} ({self.status}): {self.detail}{fields}"


class BadRequest(ApiError):
    """The request could not be read."""


class MalformedJson(BadRequest):
    """The body was no JSON."""


class InvalidEventId(BadRequest):
    """A stream was asked to go on after an event that its task does not have."""


class Unauthorized(ApiError):
    """The key is missing, wrong, expired or revoked."""


class Forbidden(ApiError):
    """The key's role may not do this."""


class NotFound(ApiError):
    """There is no such thing, or it is somebody else's."""


class TaskNotFound(NotFound):
    """There is no such task, or it is somebody else's."""


class BulkNotFound(NotFound):
    """There is no such bulk action."""


class ProviderNotFound(NotFound):
    """No provider has that name."""


class KeyNotFound(NotFound):
    """There is no such key."""


class MediaNotFound(NotFound):
    """There is no such file."""


class ProjectNotFound(NotFound):
    """There is no such project, or it is somebody else's."""


class ItemNotFound(NotFound):
    """The project has no such item."""


class WorkflowNotFound(NotFound):
    """There is no such workflow, or it is somebody else's."""


class ScheduleNotFound(NotFound):
    """There is no such schedule, or it is somebody else's."""


class WebhookNotFound(NotFound):
    """There is no such webhook, or it is somebody else's."""


class DeliveryNotFound(NotFound):
    """There is no such delivery, or it is somebody else's."""


class AgentEventNotFound(NotFound):
    """There is no such agent event, or it is somebody else's."""


class Conflict(ApiError):
    """What was asked for does not fit the present state."""


class NotCancellable(Conflict):
    """The task has completed or died already."""


class Duplicate(Conflict):
    """Another task lives under the same `dedupe_key`; the detail names it."""


class NotRevivable(Conflict):
    """Only a dead or a cancelled task can be given a new life."""


class IdempotencyKeyInFlight(Conflict):
    """The same submit is being stored at this moment; the clients ask again by themselves."""


class KeyInUse(Conflict):
    """A key cannot revoke itself."""


class QueueAlreadyRunning(Conflict):
    """The project has an open run, which the detail names."""


class BacklogEmpty(Conflict):
    """No item of the project waits."""


class NameTaken(Conflict):
    """There is one of that name already."""


class NotEscalated(Conflict):
    """Only an escalated workflow can be resumed."""


class WorkflowCancelled(Conflict):
    """The workflow is cancelled, or about to be: nothing of it starts or comes back."""


class AlreadyDecided(Conflict):
    """Somebody has approved or rejected the task, or it was asked about for too long."""


class NotWaitingForApproval(Conflict):
    """The task does not wait for anybody's word."""


class UrlTaken(Conflict):
    """You have a webhook for this url: change that one."""


class WebhookDeleted(Conflict):
    """The delivery's webhook was deleted."""


class DeliveryUnderWay(Conflict):
    """A worker is just trying the delivery."""


class ModelExists(Conflict):
    """The provider's model of that name is there already."""


class ModelActive(Conflict):
    """The active model is what memory is searched by: activate another one first."""


class TooLarge(ApiError):
    """The body is larger than the API takes."""


class Invalid(ApiError):
    """A field did not pass its check: `errors` names it."""


class InvalidTask(Invalid):
    """A field of the task itself is wrong."""


class InvalidPayload(Invalid):
    """The payload does not fit the actor's schema."""


class UnknownActor(Invalid):
    """No actor has that name."""


class UnknownAgent(Invalid):
    """No agent is configured under that name."""


class UnknownProvider(Invalid):
    """No provider of that name does this kind of work."""


class UnknownDependency(Invalid):
    """A task that this one should wait for does not exist."""


class InvalidWorkflow(Invalid):
    """A field is wrong, a key is there twice or not at all, or tasks wait for each other in a circle."""


class InvalidReference(Invalid):
    """A payload refers to something that its task does not depend on."""


class InvalidSchedule(Invalid):
    """A time that cannot be read, a zone that nobody knows, or a target that could not be submitted."""


class InvalidWebhook(Invalid):
    """A field of the webhook is wrong."""


class IdempotencyKeyReused(Invalid):
    """The Idempotency-Key came before with another body."""


class EmptyFilter(Invalid):
    """A filter that chooses nothing chooses everything: say so with `everything`."""


class TooManyRequests(ApiError):
    """Slow down; `retry_after` says for how long."""


class Unavailable(ApiError):
    """The API answers and cannot serve at the moment; it says when to come back."""


class TaskEnded(WindlassError):
    """The task has ended without a result; it is at hand as `task`."""

    def __init__(self, task: "Task") -> None:
        super().__init__(task)
        self.task = task


class TaskDead(TaskEnded):
    def __str__(self) -> str:
        error = self.task.error
        reason = f"{error.type}: {error.message}" if error else "no error is known"
        return f"task {self.task.task_id} is dead after attempt {self.task.attempt}: {reason}"


class TaskCancelled(TaskEnded):
    def __str__(self) -> str:
        return f"task {self.task.task_id} was cancelled"


class WaitTimeout(WindlassError, TimeoutError):
    """The task had not ended when the time was up; it goes on, and `task` shows how it stood."""

    def __init__(self, task: "Task", seconds: float) -> None:
        super().__init__(task, seconds)
        self.task = task
        self.seconds = seconds

    def __str__(self) -> str:
        return f"task {self.task.task_id} is still {self.task.status} after {self.seconds:g} s; it goes on"


class WorkflowTimeout(WindlassError, TimeoutError):
    """The workflow was still running when the time was up; it goes on, and `workflow` shows how it stood."""

    def __init__(self, workflow: "Workflow", seconds: float) -> None:
        super().__init__(workflow, seconds)
        self.workflow = workflow
        self.seconds = seconds

    def __str__(self) -> str:
        return f"workflow {self.workflow.workflow_id} is still running after {self.seconds:g} s; it goes on"
