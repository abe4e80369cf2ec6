"""The tables, declared once; Alembic's migrations are tested to produce exactly these.

Foreign keys are left out on the hot path on purpose: checking one would lock a shared row (the provider's, the task's)
at every insert, tasks and events are never deleted, and the functions in `shared/store/sql` write both sides.
"""

from windlass.shared.models.access import ApiKey, AuditEntry, ServerSecret, Session, SessionLink
from windlass.shared.models.actors import ActorVersion, TaskChild, TaskStep
from windlass.shared.models.bookkeeping import BulkJob, SubmissionKey, TaskCount, TaskQueueMetric, TaskTally
from windlass.shared.models.groups import Barrier, GroupFailure, TaskGroup
from windlass.shared.models.media import Content, Generation
from windlass.shared.models.memory import AgentEvent, Embedding, EmbeddingJob, EmbeddingModel, QuestionVector
from windlass.shared.models.outbox import GlobalSubscriptions, OutboxMove, OutboxSubject
from windlass.shared.models.processes import FunctionSet, ServiceReport, Worker
from windlass.shared.models.projects import Project, ProjectEvent, ProjectItem, ProjectRun
from windlass.shared.models.providers import Actor, Provider, ProviderEvent, ProviderResult, Queue
from windlass.shared.models.schedules import Schedule, ScheduleEvent, ScheduleRun
from windlass.shared.models.tasks import Task, TaskDependency, TaskEvent, TaskTag, Unsettled
from windlass.shared.models.webhooks import Delivery, DeliveryTry, Webhook, WebhookBody
from windlass.shared.models.workflows import Workflow, WorkflowEvent, WorkflowNode

__all__ = [
    "Actor",
    "ActorVersion",
    "AgentEvent",
    "ApiKey",
    "AuditEntry",
    "Barrier",
    "BulkJob",
    "Content",
    "Delivery",
    "DeliveryTry",
    "Embedding",
    "EmbeddingJob",
    "EmbeddingModel",
    "FunctionSet",
    "Generation",
    "GlobalSubscriptions",
    "GroupFailure",
    "OutboxMove",
    "OutboxSubject",
    "Project",
    "ProjectEvent",
    "ProjectItem",
    "ProjectRun",
    "Provider",
    "ProviderEvent",
    "ProviderResult",
    "QuestionVector",
    "Queue",
    "Schedule",
    "ScheduleEvent",
    "ScheduleRun",
    "ServerSecret",
    "ServiceReport",
    "Session",
    "SessionLink",
    "SubmissionKey",
    "Task",
    "TaskChild",
    "TaskCount",
    "TaskDependency",
    "TaskEvent",
    "TaskGroup",
    "TaskQueueMetric",
    "TaskStep",
    "TaskTag",
    "TaskTally",
    "Unsettled",
    "Webhook",
    "WebhookBody",
    "Worker",
    "Workflow",
    "WorkflowEvent",
    "WorkflowNode",
]
