"""Why an operator did something: optional everywhere, and kept in the audit log."""

from typing import Annotated, Any

from litestar import Request
from litestar.params import QueryParameter
from pydantic import ConfigDict, Field, ValidationError

from windlass.services.api.http.bodies import read_json
from windlass.services.api.http.errors import invalid_fields
from windlass.shared.forms import Form

LONGEST = 500
SAID = "Why, for the audit log."

Reason = Annotated[str, Field(min_length=1, max_length=LONGEST, description=SAID)]
AskedReason = Annotated[str | None, QueryParameter(name="reason", min_length=1, max_length=LONGEST, description=SAID)]
"""Where a call has no body."""


class Reasoned(Form):
    """A change that takes nothing else."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    reason: Reason | None = None


async def read_reason(request: Request[Any, Any, Any]) -> str | None:
    """From a body that may be left out; one that is not there need not be JSON."""
    headers = request.headers
    if headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers:
        return None
    body = await read_json(request, optional=True)
    try:
        return Reasoned.model_validate(body).reason
    except ValidationError as error:
        raise invalid_fields(error, "invalid-request", Reasoned) from error
