"""Errors as RFC 9457 problem documents: a stable code, what happened, and which fields were wrong."""

import logging
from collections.abc import Collection, Sequence
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException
from litestar.status_codes import HTTP_500_INTERNAL_SERVER_ERROR
from pydantic import BaseModel, ValidationError

from windlass.shared import db
from windlass.shared.errors import words_of
from windlass.shared.scrubbing import scrub
from windlass.shared.submission.refusal import MOST_REPORTED, Refused, Wrong, wrong_fields

log = logging.getLogger("api")

PROBLEM_JSON = "application/problem+json"
RETRY_AFTER_SECONDS = 2

FIELDS_TOLD = 3

LONGEST_POINTER, LONGEST_DETAIL, LARGEST_ERRORS_BYTES = 500, 1000, 48_000
"""What a problem repeats of a request is bounded, so that no answer to a bad one is larger than 64 KB."""

CODES = {400: "bad-request", 401: "unauthorized", 403: "forbidden", 404: "not-found", 405: "method-not-allowed"}

REFUSALS = {"forbidden": 403, "payload-too-large": 413}
"""What a refused task is answered with, where it is not 422."""
SEVERAL_FIELDS = {"invalid-payload", "invalid-reference", "invalid-task", "invalid-workflow"}
"""Where several fields may be wrong at once."""

THINGS = {
    "/api/v1/tasks/": ("task", "task-not-found"),
    "/api/v1/projects/": ("project", "project-not-found"),
    "/api/v1/workflows/": ("workflow", "workflow-not-found"),
    "/api/v1/schedules/": ("schedule", "schedule-not-found"),
    "/api/v1/bulk/": ("bulk job", "bulk-not-found"),
    "/api/v1/media/": ("media", "media-not-found"),
}


class Problem(Exception):
    """An answer that is an error, on purpose."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        errors: list[dict[str, str]] | None = None,
        headers: dict[str, str] | None = None,
        more: dict[str, Any] | None = None,
    ) -> None:
        """`more` stands beside the members that every problem has."""
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.errors = errors
        self.headers = headers
        self.more = more


def invalid_fields(
    error: ValidationError, code: str, model: type[BaseModel], *, below: str = "", beside: Collection[str] = ()
) -> Problem:
    """A failed check, each field named by a JSON pointer; `beside` are names that stand next to the model's own."""
    return problem_of_fields(code, wrong_fields(error, model, below=below, beside=beside))


def problem_of(refused: Refused) -> Problem:
    if refused.code in SEVERAL_FIELDS:
        return problem_of_fields(refused.code, refused.wrong)
    (wrong,) = refused.wrong
    return Problem(REFUSALS.get(refused.code, 422), refused.code, wrong.detail, errors=[wrong._asdict()])


def problem_of_fields(code: str, wrong: Sequence[Wrong]) -> Problem:
    """The detail has the first few fields in full, for readers who see nothing else."""
    named = "; ".join(f"{each.pointer or '/'}: {each.detail}" for each in wrong[:FIELDS_TOLD])
    more = (
        ""
        if len(wrong) <= FIELDS_TOLD
        else "; and more"
        if len(wrong) >= MOST_REPORTED
        else f"; and {len(wrong) - FIELDS_TOLD} more"
    )
    detail = f"invalid field {named}" if len(wrong) == 1 else f"invalid fields: {named}{more}"
    return Problem(422, code, detail, errors=[each._asdict() for each in wrong])


def problem_response(request: Request[Any, Any, Any], problem: Problem) -> Response[dict[str, Any]]:
    body: dict[str, Any] = {
        "type": f"/problems/{problem.code}",
        "code": problem.code,
        "title": problem.code.replace("-", " ").capitalize(),
        "status": problem.status,
        "detail": excerpt(problem.detail, LONGEST_DETAIL),
        "request_id": request.scope["request_id"],  # type: ignore[typeddict-item]
    }
    body |= problem.more or {}
    if problem.errors is not None:
        body["errors"] = reported(problem.errors)
    return Response(body, status_code=problem.status, headers=problem.headers, media_type=PROBLEM_JSON)


def reported(errors: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    found = [
        {"pointer": excerpt(each["pointer"], LONGEST_POINTER), "detail": excerpt(each["detail"], LONGEST_DETAIL)}
        for each in errors[:MOST_REPORTED]
    ]
    while len(msgspec.json.encode(found)) > LARGEST_ERRORS_BYTES:
        found.pop()
    return found


def excerpt(text: str, longest: int) -> str:
    """The beginning of it without secrets. One that the cut would halve is recognised first."""
    scrubbed = scrub(text[: 2 * longest])
    return scrubbed if len(scrubbed) <= longest else f"{scrubbed[: longest - 1]}…"


def handle_problem(request: Request[Any, Any, Any], error: Problem) -> Response[dict[str, Any]]:
    return problem_response(request, error)


def handle_http(request: Request[Any, Any, Any], error: HTTPException) -> Response[dict[str, Any]]:
    """What Litestar itself refuses, but for parameters (`queries.py`): unknown paths, unreadable bodies."""
    status = error.status_code
    code = CODES.get(status, "bad-request" if status < 500 else "internal-error")
    detail = error.detail
    if status == 404:
        code, detail = nothing_at(request.scope["path"])
    if status == 405:
        detail = f"{request.method} is not for this path; `Allow` names what is"
    # Of what Litestar would say beside it, only which methods there are.
    headers = {"Allow": error.headers["allow"]} if error.headers and "allow" in error.headers else None
    return problem_response(request, Problem(status, code, detail, headers=headers))


def nothing_at(path: str) -> tuple[str, str]:
    """An id that is none is the id of nothing: no more is said of it than of one that nobody has."""
    for beginning, (thing, code) in THINGS.items():
        if path.startswith(beginning) and (said := path.removeprefix(beginning).partition("/")[0]):
            return code, f"there is no {thing} {said[:60]}"
    return "not-found", "there is nothing at this path; /schema shows what there is"


def handle_unavailable(request: Request[Any, Any, Any], error: Exception) -> Response[dict[str, Any]]:
    log.debug("Postgres is away: %s", words_of(error))  # the hub says it once, and when it ends
    detail = "the database cannot be reached at the moment; what was under way may or may not be stored"
    if reason := db.refused_to_store(error):
        log.warning("Postgres refused to store what %s %s asked for: %s", request.method, request.url.path, reason)
        detail = f"nothing was stored: the database refuses it at the moment, for {reason}"
    if isinstance(error, db.NOT_MIGRATED):
        detail = "the database is not at this version's schema yet: run `windlass migrate`"
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS)}
    return problem_response(request, Problem(503, "database-unavailable", detail, headers=headers))


def handle_unstorable(request: Request[Any, Any, Any], error: Exception) -> Response[dict[str, Any]]:
    """What slipped through every check and Postgres refused: the client's value, not our fault."""
    return problem_response(request, unstorable(error))


def unstorable(error: Exception) -> Problem:
    """With the first sentence that Postgres says of it: what follows may be the whole row."""
    said = error.args[0] if error.args else words_of(error)
    return Problem(422, "unstorable-value", f"a value cannot be stored or compared: {said}")


def handle_unexpected(request: Request[Any, Any, Any], error: Exception) -> Response[dict[str, Any]]:
    log.error("unexpected error at %s %s", request.method, request.url.path, exc_info=error)
    detail = "something went wrong on our side; the request_id finds it in the log"
    return problem_response(request, Problem(HTTP_500_INTERNAL_SERVER_ERROR, "internal-error", detail))


HANDLERS: dict[Any, Any] = {
    Problem: handle_problem,
    HTTPException: handle_http,
    **dict.fromkeys((*db.AWAY_OR_BUSY, *db.NOT_MIGRATED), handle_unavailable),
    **dict.fromkeys(db.UNSTORABLE, handle_unstorable),
    Exception: handle_unexpected,
}
