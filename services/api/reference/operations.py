"""Every operation of the API, by method and path."""

from windlass.services.api.reference.actor_operations import ACTOR_OPERATIONS
from windlass.services.api.reference.media_operations import MEDIA_OPERATIONS
from windlass.services.api.reference.operation import Operation
from windlass.services.api.reference.operator_operations import OPERATOR_OPERATIONS
from windlass.services.api.reference.session_operations import SESSION_OPERATIONS
from windlass.services.api.reference.task_operations import TASK_OPERATIONS

OPERATIONS: dict[tuple[str, str], Operation] = {
    **TASK_OPERATIONS,
    **ACTOR_OPERATIONS,
    **MEDIA_OPERATIONS,
    **OPERATOR_OPERATIONS,
    **SESSION_OPERATIONS,
}
