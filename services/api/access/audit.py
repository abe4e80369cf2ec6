"""What operators did: written before it is done, read by admins and viewers."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any

from litestar import Request, Response, get
from litestar.datastructures import State
from litestar.params import FromQuery, QueryParameter

from windlass.services.api.access.auth import Caller, require_overview
from windlass.services.api.http.pages import LARGE_ROWS_AT_ONCE, page
from windlass.shared.scrubbing import scrub_document
from windlass.shared.store.access import audit as audit_log
from windlass.shared.store.rows import TaskRow
from windlass.shared.store.tasks import Submission

LARGEST_ID = 2**63 - 1


@get("/audit", summary="The audit log")
async def list_audit(  # noqa: PLR0917 - Litestar passes them by name
    request: Request[Caller, None, State],
    state: State,
    action: FromQuery[str | None] = None,
    user_id: FromQuery[str | None] = None,
    cursor: Annotated[int, QueryParameter(ge=1, le=LARGEST_ID)] = LARGEST_ID,
    limit: Annotated[int, QueryParameter(ge=1, le=500)] = 50,
) -> Response[dict[str, Any]]:
    """What admins did as operators, newest first; `user_id` is the admin who did it."""
    require_overview(request.user)

    async def read(position: Any, number: int) -> list[tuple[Any, Any]]:
        rows = await audit_log.newest(state.pool, action=action, user_id=user_id, before=position, limit=number)
        return [(row.audit_id, dict(row)) for row in rows]

    return await page(read, cursor=cursor, limit=limit, at_once=LARGE_ROWS_AT_ONCE)


async def audit(
    request: Request[Caller, Any, State],
    action: str,
    target: object | None = None,
    details: dict[str, Any] | None = None,
    *,
    reason: str | None = None,
) -> None:
    """Keeps an operator's action, with the reason that was given. Call it before acting: an action without its entry
    cannot happen, at the price of an entry, now and then, whose action failed. What users do to their own things is no
    operator's action."""
    if not request.user.sees_everything:
        return
    await audit_log.record(
        request.app.state.pool,
        key_id=request.user.key_id,
        user_id=request.user.user_id,
        action=action,
        target=None if target is None else str(target),
        details=scrub_document({**(details or {}), **({} if reason is None else {"reason": reason})}),
    )


async def audit_foreign_submissions(request: Request[Caller, Any, State], submissions: Sequence[Submission]) -> None:
    """Tasks that an admin makes in other people's names: one entry for a request, however many they are."""
    owners = Counter(each.user_id for each in submissions if each.user_id != request.user.user_id)
    if owners:
        target = submissions[0].task_id if len(submissions) == 1 else None
        await audit(request, "task.submit", target, {"owners": owners})


async def audit_foreign_task(
    request: Request[Caller, Any, State], action: str, task: TaskRow, *, reason: str | None = None
) -> None:
    """An operator's hand on somebody else's task; on its own it is a user like any other."""
    if task.user_id != request.user.user_id:
        await audit(request, action, task.task_id, {"owner": task.user_id, "status": task.status}, reason=reason)


HANDLERS = [list_audit]
