"""The client's types against the API's own description: every field is known, and may be null where the API says so."""

from typing import Any, get_type_hints

import msgspec
import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from windlass.client import calls, operations, task
from windlass.client.memory import documents as memory
from windlass.client.projects import documents as projects
from windlass.client.schedules import documents as schedules
from windlass.client.task import Document
from windlass.client.webhooks import documents as webhooks
from windlass.client.workflows import documents as workflows
from windlass.services.api.reference.documents import operators as operator_documents
from windlass.services.api.reference.documents import projects as project_documents
from windlass.services.api.reference.documents import schedules as schedule_documents
from windlass.services.api.reference.documents import tasks as documents
from windlass.services.api.reference.documents import webhooks as webhook_documents
from windlass.services.api.reference.operations import actors as actor_operations
from windlass.services.api.reference.operations import memory as memory_operations
from windlass.services.api.reference.operations import workflows as workflow_operations

PAIRS: list[tuple[type[BaseModel], type[Document]]] = [
    (documents.TaskDocument, task.Task),
    (documents.ListedTaskDocument, task.Task),
    (documents.TaskErrorDocument, task.TaskError),
    (documents.ProgressDocument, task.Progress),
    (documents.BatchDocument, task.Batch),
    (documents.BatchEntry, task.SubmittedTask),
    (documents.EventDocument, task.Event),
    (documents.WhyDocument, task.Why),
    (operator_documents.QueueDocument, operations.Queue),
    (operator_documents.QueuesDocument, operations.Queues),
    (operator_documents.DeadGroup, operations.ErrorGroup),
    (operator_documents.StartedBulk, operations.BulkStarted),
    (operator_documents.MatchedDocument, operations.BulkStarted),
    (operator_documents.BulkDocument, operations.Bulk),
    (operator_documents.LimitDocument, operations.Setting),
    (operator_documents.RateDocument, operations.RateSetting),
    (operator_documents.SlotHolder, operations.SlotHolder),
    (operator_documents.SlotsDocument, operations.Slots),
    (operator_documents.PauseDocument, operations.Pause),
    (operator_documents.BreakerDocument, operations.Breaker),
    (operator_documents.ProviderDocument, operations.Provider),
    (operator_documents.WorkerDocument, operations.Worker),
    (actor_operations.ActorSummary, operations.ActorDescription),
    (actor_operations.ActorDocument, operations.ActorDescription),
    (actor_operations.ActorVersionDocument, operations.ActorVersion),
    (operator_documents.KeyDocument, operations.Key),
    (operator_documents.NewKeyDocument, operations.NewKey),
    (operator_documents.AuditEntryDocument, operations.AuditEntry),
    (operator_documents.ComponentDocument, operations.Component),
    (operator_documents.HealthDocument, operations.Health),
    (project_documents.ProjectDocument, projects.Project),
    (project_documents.ProjectQueueDocument, projects.ProjectQueue),
    (project_documents.CountsDocument, projects.Counts),
    (project_documents.StillRunning, projects.StillRunning),
    (project_documents.OpenJob, projects.OpenJob),
    (project_documents.StoppedDocument, projects.Stopped),
    (project_documents.ForceStoppedDocument, projects.ForceStopped),
    (project_documents.ItemDocument, projects.Item),
    (project_documents.RunDocument, projects.ProjectRun),
    (project_documents.ReceiptDocument, projects.Receipt),
    (project_documents.ReceiptTask, projects.Proof),
    (project_documents.ProjectEventDocument, projects.ProjectEvent),
    (project_documents.BatchAnswer, projects.BatchAnswer),
    (documents.ApprovalDocument, task.Approval),
    (workflow_operations.WorkflowDocument, workflows.Workflow),
    (workflow_operations.ListedWorkflowDocument, workflows.Workflow),
    (workflow_operations.CountsDocument, workflows.WorkflowCounts),
    (workflow_operations.NodeDocument, workflows.WorkflowNode),
    (workflow_operations.ChildDocument, workflows.WorkflowChild),
    (workflow_operations.NodeErrorDocument, workflows.NodeError),
    (workflow_operations.EdgeDocument, workflows.WorkflowEdge),
    (workflow_operations.AskedDocument, workflows.Asked),
    (schedule_documents.ScheduleDocument, schedules.Schedule),
    (schedule_documents.ScheduleRunDocument, schedules.ScheduleRun),
    (schedule_documents.PreviewDocument, schedules.Preview),
    (webhook_documents.WebhookDocument, webhooks.Webhook),
    (webhook_documents.SecretWebhookDocument, webhooks.SecretWebhook),
    (webhook_documents.DeliveryDocument, webhooks.Delivery),
    (webhook_documents.TryDocument, webhooks.DeliveryTry),
    (webhook_documents.WholeDeliveryDocument, webhooks.WholeDelivery),
    (documents.AttemptUsageDocument, task.AttemptUsage),
    (memory_operations.AgentEventDocument, memory.AgentEvent),
    (memory_operations.HitDocument, memory.Hit),
    (memory_operations.FoundDocument, memory.Found),
    (memory_operations.ModelNameDocument, memory.ModelName),
    (memory_operations.EmbeddingModelDocument, memory.EmbeddingModel),
    (memory_operations.EmbeddingJobDocument, memory.EmbeddingJob),
    (memory_operations.JobErrorDocument, memory.JobError),
    (operator_documents.DailyStatistics, memory.Figures),
]


def may_be_null(annotation: Any) -> bool:
    try:
        TypeAdapter(annotation).validate_python(None)
    except ValidationError:
        return False
    return True


def bears_null(kind: Any) -> bool:
    try:
        msgspec.convert(None, kind)
    except msgspec.ValidationError:
        return False
    return True


@pytest.mark.parametrize(("described", "known"), PAIRS, ids=lambda each: each.__name__)
def test_the_client_knows_every_field(described: type[BaseModel], known: type[Document]) -> None:
    kinds = get_type_hints(known)
    assert described.model_fields.keys() <= kinds.keys()
    for name, field in described.model_fields.items():
        if field.is_required() and may_be_null(field.annotation):
            assert bears_null(kinds[name]), f"{name} may be null"


def test_fields_that_the_client_does_not_know_are_passed_over() -> None:
    document = {"task_id": "t", "actor": "probe", "status": "queued", "mood": "good", "progress": {"colour": "red"}}
    assert calls.get("t").read(document).status == "queued"
