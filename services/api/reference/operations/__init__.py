"""Every operation of the API, by method and path."""

from windlass.services.api.reference.operation import Operation
from windlass.services.api.reference.operations.actors import ACTOR_OPERATIONS
from windlass.services.api.reference.operations.media import MEDIA_OPERATIONS
from windlass.services.api.reference.operations.memory import MEMORY_OPERATIONS
from windlass.services.api.reference.operations.operators import OPERATOR_OPERATIONS
from windlass.services.api.reference.operations.projects import PROJECT_OPERATIONS
from windlass.services.api.reference.operations.schedules import SCHEDULE_OPERATIONS
from windlass.services.api.reference.operations.sessions import SESSION_OPERATIONS
from windlass.services.api.reference.operations.tasks import TASK_OPERATIONS
from windlass.services.api.reference.operations.webhooks import WEBHOOK_OPERATIONS
from windlass.services.api.reference.operations.workflows import WORKFLOW_OPERATIONS

OPERATIONS: dict[tuple[str, str], Operation] = {
    **TASK_OPERATIONS,
    **WORKFLOW_OPERATIONS,
    **ACTOR_OPERATIONS,
    **PROJECT_OPERATIONS,
    **MEMORY_OPERATIONS,
    **WEBHOOK_OPERATIONS,
    **SCHEDULE_OPERATIONS,
    **MEDIA_OPERATIONS,
    **OPERATOR_OPERATIONS,
    **SESSION_OPERATIONS,
}
