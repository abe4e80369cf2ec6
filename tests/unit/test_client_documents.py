"""The client's types against the API's own description: every field is known, and may be null where the API says so."""

from typing import Any, get_type_hints

import msgspec
import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from windlass.client import calls, operations, task
from windlass.client.task import Document
from windlass.services.api.reference import actor_operations, documents, operator_documents

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
