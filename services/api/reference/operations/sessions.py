"""What signing in takes and answers, beside what its handlers say themselves."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from windlass.services.api.access.sessions import SignIn
from windlass.services.api.reference.documents.tasks import Document
from windlass.services.api.reference.operation import Answer, Operation

COOKIE = {"Set-Cookie": "`windlass_session`: HttpOnly, SameSite=Strict, over https Secure."}


class SessionDocument(Document):
    """Who has signed in."""

    user_id: str
    role: Literal["user", "viewer", "admin"]
    expires_at: Annotated[
        datetime | None, Field(description="Twelve hours after the last use, or the key's own end; null with a key.")
    ]
    faults: Annotated[bool, Field(description="Whether you may break things on purpose, as in `make up`.")]
    links: Annotated[
        dict[str, str], Field(description="Templates of pages elsewhere that know more of a task; none for users.")
    ]


class SessionLinkDocument(Document):
    """A link that signs in once."""

    url: Annotated[str, Field(description="Of the page; what stands behind its `#link_token=` is for `POST /session`.")]
    expires_at: datetime


SESSION_OPERATIONS: dict[tuple[str, str], Operation] = {
    ("POST", "/api/v1/session"): Operation(
        "Sessions",
        "Sign in",
        {201: Answer("You are signed in.", (SessionDocument,), headers=COOKIE)},
        problems=(401, 403, 429, 503),
        body=SignIn,
        example={"key": "wl_7Hk2…_…"},
        needs_a_key=False,
    ),
    ("GET", "/api/v1/session"): Operation("Sessions", "See who you are", {200: Answer("You.", (SessionDocument,))}),
    ("DELETE", "/api/v1/session"): Operation(
        "Sessions", "Sign out", {204: Answer("The session has ended.", headers=COOKIE)}
    ),
    ("POST", "/api/v1/session-links"): Operation(
        "Sessions", "Make a link that signs in once", {201: Answer("The link.", (SessionLinkDocument,))}
    ),
}
