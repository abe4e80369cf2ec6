"""A request's body as JSON, and everything about it that can be refused before anybody looks at the fields."""

import asyncio
import json
import re
from typing import Any

import msgspec
from litestar import Request
from litestar.exceptions import ClientException
from litestar.exceptions.http_exceptions import RequestEntityTooLarge

from windlass.services.api.http.errors import Problem, problem_of
from windlass.shared.settings import Settings
from windlass.shared.submission import storing
from windlass.shared.submission.refusal import Refused

AS_ZEROS = bytes.maketrans(b"123456789", b"000000000")
LONG_NUMBER = b"0" * 19
BRACKETS_ALIKE = bytes.maketrans(b"{}", b"[]")
NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
ESCAPED_COLON = re.compile(rb"\\u003[aA]")

PLAIN = "identity"
CURLS_WORD = "application/x-www-form-urlencoded"


async def read_json(
    request: Request[Any, Any, Any], *, largest_bytes: int | None = None, optional: bool = False
) -> Any:
    """The body, decoded and storable; an empty object where it may be left out and is. A handler with a limit of its
    own names it."""
    settings: Settings = request.app.state.settings
    refuse_other_types(request.headers.get("content-type"))
    refuse_encodings(request.headers.get("content-encoding"))
    content = await read_body(request, settings, largest_bytes or settings.largest_body_bytes)
    if not content.strip():
        if optional:
            return {}
        raise Problem(400, "empty-body", "the request has no body; send a JSON object")
    try:
        value = msgspec.json.decode(content)
    except msgspec.ValidationError as error:
        raise Problem(422, "number-too-large", f"a number in the body is too large: {error}") from error
    except RecursionError as error:
        raise problem_of(storing.too_deep("", settings)) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Problem(400, "malformed-json", f"the body is not JSON in UTF-8: {error}") from error
    if not is_harmless(content, settings.deepest_json):
        refuse_unstorable(value, settings)
    if may_repeat_names(content, value):
        refuse_repeated_names(content)
    return value


def may_repeat_names(content: bytes, value: Any) -> bool:
    """The quick look: of a name that an object repeats only the last value was kept, so that written again the value
    has fewer colons. An escaped one in a text would be written as it is, and could make up for that."""
    return content.count(b":") != msgspec.json.encode(value).count(b":") or ESCAPED_COLON.search(content) is not None


def refuse_repeated_names(content: bytes) -> None:
    """Readers differ in which of two values they take, so that two of them could understand two requests."""

    def read(pairs: list[tuple[str, Any]]) -> None:
        if len(dict(pairs)) == len(pairs):
            return
        names: set[str] = set()
        for name, _ in pairs:
            if name in names:
                raise Problem(400, "duplicate-name", f"an object in the body has the name {name[:100]!r} twice")
            names.add(name)

    json.loads(content, object_pairs_hook=read, parse_int=len, parse_float=len)


def refuse_other_types(declared: str | None) -> None:
    """A body without a type is taken for JSON; one that says to be something else is a mistake worth hearing of."""
    if declared is None:
        return
    kind = declared.partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        detail = f"the body is declared as {kind[:100] or 'nothing'}; send JSON with Content-Type: application/json"
        detail += " (`curl --json` does; `curl -d` says that everything is a form)" if kind == CURLS_WORD else ""
        raise Problem(415, "unsupported-media-type", detail, headers={"Accept": "application/json"})


def refuse_encodings(declared: str | None) -> None:
    if declared is not None and declared.strip().lower() not in {"", PLAIN}:
        detail = f"the body is declared as {declared[:40]}; send it as it is, without a Content-Encoding"
        raise Problem(415, "unsupported-content-encoding", detail, headers={"Accept-Encoding": PLAIN})


async def read_body(request: Request[Any, Any, Any], settings: Settings, largest_bytes: int) -> bytes:
    """Counts what really arrives, whatever the client said of its length, and does not wait for it for ever."""
    try:
        async with asyncio.timeout(settings.body_seconds):
            return await request.body()
    except RequestEntityTooLarge as error:
        detail = f"a body may have {largest_bytes:,} bytes"
        raise Problem(413, "body-too-large", detail, headers={"Connection": "close"}) from error
    except TimeoutError as error:
        detail = f"the body did not arrive within {settings.body_seconds:g} s"
        raise Problem(408, "body-incomplete", detail, headers={"Connection": "close"}) from error
    except ClientException as error:
        raise Problem(400, "malformed-request", error.detail) from error


def is_harmless(content: bytes, deepest: int) -> bool:
    """The quickest look, at the bytes: no NUL, no long number, and brackets that do not nest too deep."""
    return b"\\u0000" not in content and LONG_NUMBER not in content.translate(AS_ZEROS) and is_flat(content, deepest)


def is_flat(content: bytes, deepest: int) -> bool:
    """Of JSON that has been read: takes the texts away, then the innermost brackets, level by level."""
    if content.count(b"[") + content.count(b"{") <= deepest:
        return True
    without_escapes = content.replace(rb"\\", b"").replace(rb"\"", b"")
    outside_of_texts = b"".join(without_escapes.split(b'"')[::2])
    brackets = outside_of_texts.translate(BRACKETS_ALIKE, NO_BRACKETS)
    for _ in range(deepest):
        brackets = brackets.replace(b"[]", b"")
    return not brackets


def refuse_unstorable(value: Any, settings: Settings) -> None:
    """Names what the quick look has found."""
    try:
        storing.refuse_unstorable(value, settings)
    except Refused as refused:
        raise problem_of(refused) from refused


def field_problem(pointer: str, code: str, detail: str, *, status: int = 422) -> Problem:
    return Problem(status, code, detail, errors=[{"pointer": pointer, "detail": detail}])
