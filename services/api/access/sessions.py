"""Signing in and out over REST: a key, or a link that a key has made, becomes a cookie that scripts cannot read."""

from typing import Annotated, Any

from litestar import Request, Response, delete, get, post
from litestar.datastructures import State
from pydantic import ConfigDict, Field, ValidationError, model_validator

from windlass.services.api.access.audit import audit
from windlass.services.api.access.auth import TOO_MANY_KEYS, Caller, count_failure
from windlass.services.api.access.session_cookies import (
    comes_by_https,
    erased,
    refuse_foreign_sign_in,
    session_secret,
    written,
)
from windlass.services.api.http.bodies import read_json
from windlass.services.api.http.errors import Problem, invalid_fields
from windlass.shared.forms import Form
from windlass.shared.settings import Settings
from windlass.shared.store.access import keys, sessions
from windlass.shared.store.access.keys import fingerprint
from windlass.shared.store.access.sessions import LivingSession

Asked = Request[Caller, None, State]

LANDING = "/sign-in#link_token="
"""Behind the `#`: browsers keep that part to themselves, so that no proxy's log has the token."""

Secret = Annotated[str, Field(min_length=1, max_length=200)]


class SignIn(Form):
    """`POST /session`: one of the two."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    key: Secret | None = None
    link_token: Secret | None = None

    @model_validator(mode="after")
    def _says_one(self) -> "SignIn":
        if (self.key is None) == (self.link_token is None):
            raise ValueError("say either `key` or `link_token`")
        return self


@post("/session", public=True, status_code=201)
async def sign_in(request: Request[Any, Any, State], state: State) -> Response[dict[str, Any]]:
    """For browsers: sets a cookie that stands for the key, until twelve hours after its last use. A session whose
    cookie came with the request ends."""
    refuse_foreign_sign_in(request)
    body = await read_json(request)
    try:
        wanted = SignIn.model_validate(body)
    except ValidationError as error:
        raise invalid_fields(error, "invalid-request", SignIn) from error
    secret, secure = sessions.new_secret(), comes_by_https(request)
    session = await begun(state, wanted, secret, secure=secure)
    if session is None:
        count_failure(request, TOO_MANY_KEYS)
        detail = "this key opens nothing" if wanted.key else "this link has been used, or is older than 15 minutes"
        raise Problem(401, "unauthorized", f"{detail}: it cannot be signed in with")
    if former := session_secret(request):
        await end_session(state, fingerprint(former))
    headers = {"Set-Cookie": written(secret, secure=secure)}
    return Response(session_document(session, state), status_code=201, headers=headers)


async def end_session(state: State, session_hash: bytes) -> None:
    """Other api processes are notified by Postgres; in this one the session must not open the very next request."""
    key_id = await sessions.end(state.pool, session_hash)
    if key_id is not None:
        state.keyring.forget(key_id)


async def begun(state: State, wanted: SignIn, secret: str, *, secure: bool) -> LivingSession | None:
    if wanted.key is None:
        return await sessions.begin_by_link(state.pool, secret, str(wanted.link_token), secure=secure)
    caller: Caller | None = await state.keyring.open(wanted.key)
    return None if caller is None else await sessions.begin(state.pool, secret, caller.key_id, secure=secure)


@get("/session")
async def get_session(request: Asked, state: State) -> dict[str, Any]:
    """Who asks, by which role, and until when: by a session's cookie, or by a key."""
    caller = request.user
    if caller.session_hash is not None:
        session = await sessions.living(state.pool, caller.session_hash)
        if session is None:
            raise Problem(401, "unauthorized", "the session has ended; sign in again")
        return session_document(session, state)
    row = await keys.get(state.pool, caller.key_id)
    assert row is not None, "keys are never deleted"
    return session_document(row, state)


@delete("/session", status_code=204)
async def sign_out(request: Asked, state: State) -> Response[None]:
    """Ends the session, and what is open under it. With a key there is nothing to end."""
    session_hash = request.user.session_hash
    if session_hash is None:
        return Response(None, status_code=204)
    await end_session(state, session_hash)
    return Response(None, status_code=204, headers={"Set-Cookie": erased(secure=comes_by_https(request))})


@post("/session-links", status_code=201)
async def make_session_link(request: Asked, state: State) -> dict[str, Any]:
    """A url that signs a browser in as yourself, once, within fifteen minutes: nobody has to type a key."""
    secret = sessions.new_secret()
    await audit(request, "session-link.create", request.user.key_id)
    expires_at = await sessions.make_link(state.pool, secret, request.user.key_id)
    return {"url": f"{state.settings.address}{LANDING}{secret}", "expires_at": expires_at}


def session_document(session: Any, state: State) -> dict[str, Any]:
    """`faults` and `links` are for the page, which offers to kill a worker and to look elsewhere only where one can."""
    settings: Settings = state.settings
    return {
        "user_id": session.user_id,
        "role": session.role,
        "expires_at": session.expires_at,
        "faults": settings.probe_faults and session.role == "admin",
        "links": links_for(session.role, settings),
    }


def links_for(role: str, settings: Settings) -> dict[str, str]:
    """Where operators look further: these pages show everybody's work."""
    known = {"Grafana": settings.grafana_url, "Traces": settings.traces_url}
    return {name: url for name, url in known.items() if url} if role in {"admin", "viewer"} else {}


HANDLERS = [sign_in, get_session, sign_out, make_session_link]
