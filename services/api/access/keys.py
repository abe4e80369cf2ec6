"""Keys over REST: an admin makes them, lists them and revokes them. A secret is shown once, when it is made."""

from typing import Annotated, Any, Literal

from litestar import Request, Response, delete, get, post
from litestar.datastructures import State
from litestar.params import FromPath, QueryParameter
from pydantic import ConfigDict, Field, ValidationError

from windlass.services.api.access.audit import audit
from windlass.services.api.access.auth import Caller, require_admin, require_overview
from windlass.services.api.access.reasons import AskedReason, Reason
from windlass.services.api.http.bodies import read_json
from windlass.services.api.http.errors import Problem, invalid_fields
from windlass.services.api.http.pages import page
from windlass.services.api.tasks.schemas import UserId
from windlass.shared.filters import Label
from windlass.shared.forms import Form
from windlass.shared.store.access import keys

A_CENTURY = 100 * 366 * 86400

Asked = Request[Caller, None, State]


class NewKey(Form):
    """`POST /keys`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    role: Literal["user", "viewer", "admin"]
    user_id: UserId
    name: Label | None = None
    expires_in_seconds: Annotated[float, Field(gt=0, le=A_CENTURY, allow_inf_nan=False)] | None = None
    reason: Reason | None = None


@post("/keys", status_code=201, summary="Make a key")
async def create_key(request: Asked, state: State) -> dict[str, Any]:
    """Answers with the key itself, this once: only its hash is kept."""
    require_admin(request.user)
    body = await read_json(request)
    try:
        wanted = NewKey.model_validate(body)
    except ValidationError as error:
        raise invalid_fields(error, "invalid-key", NewKey) from error
    key = keys.new_key()
    parts = keys.split(key)
    assert parts is not None
    said = wanted.model_dump(exclude={"reason"})
    await audit(request, "key.create", parts[0], said, reason=wanted.reason)
    row = await keys.create(state.pool, key, **said, created_by=request.user.user_id)
    shown = {name: row[name] for name in ("role", "user_id", "name", "created_at", "expires_at")}
    return {"key_id": row.key_id, "key": key, **shown}


@get("/keys", summary="List the keys")
async def list_keys(
    request: Asked,
    state: State,
    cursor: Annotated[str | None, QueryParameter(max_length=32, pattern="^[0-9A-Za-z]+$")] = None,
    limit: Annotated[int, QueryParameter(ge=1, le=500)] = 100,
) -> Response[dict[str, Any]]:
    """Every key without its secret, the latest first; also those that are revoked or expired."""
    require_overview(request.user)

    async def read(position: Any, number: int) -> list[tuple[Any, Any]]:
        rows = await keys.newest(state.pool, before=position, limit=number)
        return [(row.key_id, dict(row)) for row in rows]

    return await page(read, cursor=cursor, limit=limit)


@delete("/keys/{key_id:str}", status_code=200, summary="Revoke a key")
async def revoke_key(request: Asked, state: State, key_id: FromPath[str], reason: AskedReason = None) -> dict[str, Any]:
    """It opens nothing from now on, in any api process; the row is kept. The schedules and webhooks of an owner without
    another key stop, and without another admin's key webhooks of `scope: all`. Again: 200, and nothing changes."""
    require_admin(request.user)
    if key_id == request.user.key_id:
        detail = "this is the key that you are using; revoke it with another admin's key"
        raise Problem(409, "key-in-use", detail)
    if "\0" in key_id or await keys.get(state.pool, key_id) is None:
        raise Problem(404, "key-not-found", f"there is no key {key_id[:40]!r}")
    await audit(request, "key.revoke", key_id, reason=reason)
    row = await keys.revoke(state.pool, key_id)
    assert row is not None, "keys are never deleted"
    # The others hear of it from Postgres; here it must not open even the very next request.
    state.keyring.forget(key_id)
    return dict(row)


HANDLERS = [create_key, list_keys, revoke_key]
