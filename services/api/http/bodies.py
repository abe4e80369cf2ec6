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

MOST_OBJECTS = 100_000
"""Lists and objects in one body: each takes a hundred times as long to read as its two bytes of text would."""
MOST_EXAMINED = 50_000
"""Commas in a body in which a fault is searched for and named: that takes longer than finding out that there is one."""

AS_ZEROS = bytes.maketrans(b"123456789", b"000000000")
LONG_NUMBER, ZEROS = b"0" * 19, re.compile(b"0++")
GREATEST, LEAST = str(storing.GREATEST_INTEGER).encode(), str(-storing.LEAST_INTEGER).encode()
"""The digits of the largest integers, the second behind a minus; 19 of them may be too many."""
BRACKETS_ALIKE = bytes.maketrans(b"{}", b"[]")
NEITHER_BRACKETS_NOR_QUOTES = bytes(set(range(256)) - set(b'[]{}"'))
BRACKETS_IN_QUOTES = re.compile(rb'"[\[\]]*+"')
ESCAPED_NUL, ESCAPED_COLONS = rb"\u0000", (rb"\u003a", rb"\u003A")

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
    brackets = brackets_of(content, settings.deepest_json)
    if brackets.count(b"[") > MOST_OBJECTS:
        detail = f"the body has more than {MOST_OBJECTS:,} lists and objects; send several smaller ones"
        raise Problem(422, "too-many-objects", detail)
    try:
        value = msgspec.json.decode(content)
    except msgspec.ValidationError as error:
        raise Problem(422, "number-too-large", f"a number in the body is too large: {error}") from error
    except RecursionError as error:
        raise problem_of(storing.too_deep("", settings)) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Problem(400, "malformed-json", f"the body is not JSON in UTF-8: {error}") from error
    if (fault := fault_of(content, value, brackets, settings)) is not None:
        if content.count(b",") <= MOST_EXAMINED:
            refuse_unstorable(value, settings)
            refuse_repeated_names(content)
        raise fault
    return value


def fault_of(content: bytes, value: Any, brackets: bytes, settings: Settings) -> Problem | None:
    """Why the body is refused, without the place: found by what the value is written as."""
    if not is_flat(brackets, settings.deepest_json):
        return problem_of(storing.too_deep("", settings))
    if has_large_number(content):
        return problem_of(storing.number_too_large(""))
    written = msgspec.json.encode(value)
    if ESCAPED_NUL in written and ESCAPED_NUL in written.replace(rb"\\", b""):
        return problem_of(storing.nul(""))
    if repeats_names(content, written):
        return Problem(400, "duplicate-name", "an object in the body has the same name twice")
    return None


def brackets_of(content: bytes, few: int) -> bytes:
    """Those outside of texts, all of them square; none where there are few in all."""
    if content.count(b"[") + content.count(b"{") <= few:
        return b""
    marks = without_escapes(content).translate(BRACKETS_ALIKE, NEITHER_BRACKETS_NOR_QUOTES)
    # Most texts have no brackets. Where two texts meet, this makes one of them, which goes just the same.
    return BRACKETS_IN_QUOTES.sub(b"", marks.replace(b'""', b""))


def without_escapes(content: bytes) -> bytes:
    """So that each quotation mark begins or ends a text."""
    return content.replace(rb"\\", b"").replace(rb"\"", b"")


def has_large_number(content: bytes) -> bool:
    """Whether an integer outside of texts has more than 64 bits. Only runs of so many digits are looked at."""
    if LONG_NUMBER not in content.translate(AS_ZEROS):
        return False
    content = without_escapes(content)
    zeros = content.translate(AS_ZEROS)
    is_text, counted, end = False, 0, 0
    while (start := zeros.find(LONG_NUMBER, end)) >= 0:
        end = ZEROS.match(zeros, start).end()  # type: ignore[union-attr] # there are some
        greatest = GREATEST if content[start - 1 : start] != b"-" else LEAST
        if end - start < len(greatest) or (end - start == len(greatest) and content[start:end] <= greatest):
            continue
        is_text ^= zeros.count(b'"', counted, start) % 2 == 1
        counted = start
        if not is_text and not _is_part_of_a_float(content[max(0, start - 2) : start], content[end : end + 1]):
            return True
    return False


def _is_part_of_a_float(before: bytes, after: bytes) -> bool:
    return after in {b".", b"e", b"E"} or before[-1:] in {b".", b"e", b"E", b"+"} or before in {b"e-", b"E-"}


def is_flat(brackets: bytes, deepest: int) -> bool:
    """Takes the innermost ones away, level by level."""
    for _ in range(deepest):
        if not brackets:
            break
        brackets = brackets.replace(b"[]", b"")
    return not brackets


def repeats_names(content: bytes, written: bytes) -> bool:
    """Of a name that an object repeats only the last value was kept, so what is written again has fewer colons. Those
    that the body has escaped in a text are written as they are."""
    colons = content.count(b":")
    if any(escape in content for escape in ESCAPED_COLONS):
        without_backslashes = content.replace(rb"\\", b"")
        colons += sum(without_backslashes.count(escape) for escape in ESCAPED_COLONS)
    return colons != written.count(b":")


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


def refuse_unstorable(value: Any, settings: Settings) -> None:
    """Names the place of what was found."""
    try:
        storing.refuse_unstorable(value, settings)
    except Refused as refused:
        raise problem_of(refused) from refused


def field_problem(pointer: str, code: str, detail: str, *, status: int = 422) -> Problem:
    return Problem(status, code, detail, errors=[{"pointer": pointer, "detail": detail}])
