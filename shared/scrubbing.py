"""Secrets taken out of text before it is stored, logged or answered: by their shape, and by their exact value."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

SCRUBBED = "[scrubbed]"

_NAMES = (
    r"api[_-]?key|(?:access|refresh|auth|id|session)[_-]?token|token|pass(?:word|wd|phrase)|pwd|secret(?:[_-]?key)?"
    r"|private[_-]?key|signature|credentials?|auth"
)
"""What a value is called that nobody else may read; also as the end of a longer name, `OPENROUTER_API_KEY`."""

_NAME_HINTS = "key token pass pwd secret signature credential auth"

_HEADERS = r"(?:proxy-)?authorization|x-api-key|api-key|x-auth-token|x-goog-api-key"
_VALUE = r"""[^\s"'&,;<>(){}\[\]]+"""
_PROSE = r"(?:auth\w*|tokens?|scheme|header|keys?|realm|error|credentials?|is|was|or|and|of|for|with|in|not)\b"
"""Words that follow "bearer" in a sentence rather than in a header."""

_TOKENS = (
    r"sk-[\w-]{8,}", r"[sr]k_(?:live|test)_\w{8,}", r"gh[pousr]_\w{20,}", r"github_pat_\w{20,}", r"glpat-[\w-]{16,}",
    r"xox[abeprs]-[\w-]{10,}", r"hf_\w{20,}", r"r8_\w{20,}", r"whsec_[\w+/=-]{16,}", r"(?-i:AKIA[0-9A-Z]{16})",
    r"(?-i:AIza[\w-]{30,})",
)  # fmt: skip
"""Keys that their makers begin with a word of their own."""

_BEGINNINGS = "sk- _live_ _test_ ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- xox hf_ r8_ whsec_ akia aiza"


@dataclass(frozen=True)
class Shape:
    """What a secret looks like. It is only looked for in text that has one of the hints, in lower case: most has none,
    and that is found out a hundred times faster."""

    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    replacement: str = SCRUBBED


def _shape(hints: str, pattern: str, replacement: str = SCRUBBED) -> Shape:
    return Shape(tuple(hints.split()), re.compile(pattern, re.IGNORECASE | re.DOTALL), replacement)


_OWN_KEYS = _shape("wl_", r"\b(wl_[0-9a-z]+_)[0-9a-z]+", rf"\1{SCRUBBED}")

# None of these can go over the same stretch of text again and again: a provider's error page may be long, and is not
# ours to choose.
SHAPES = (
    _shape("private", r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)"),
    _shape("://", r"""(://)[^\s/?#"'<>\\]+@""", rf"\1{SCRUBBED}@"),
    _shape(
        "authorization api-key auth-token",
        rf"""\b({_HEADERS})(["']?\s*[:=]\s*(?:b?["'])?)(?:digest\s[^\r\n]+|(?:[\w-]+\s+)?[^\s"',;()]+)""",
        rf"\1\2{SCRUBBED}",
    ),
    _shape("cookie", r"""((?:set-)?cookie["']?\s*[:=]\s*(?:b?["'])?)[^\r\n"']+""", rf"\1{SCRUBBED}"),
    _shape("bearer", rf"\b(bearer\s+)(?!{_PROSE})[\w.~+/=-]{{4,}}", rf"\1{SCRUBBED}"),
    _shape(
        "basic",
        r"\b(basic\s+)(?=[a-z+/]{0,200}(?:[0-9=+/]|(?-i:[a-z][A-Z])))[\w+/=-]{8,}",
        rf"\1{SCRUBBED}",
    ),
    _shape(_NAME_HINTS, rf"""({_NAMES})(\\?["']?\s*(?:=|%3d)\s*\\?["']?){_VALUE}""", rf"\1\2{SCRUBBED}"),
    _shape(_NAME_HINTS, rf"""({_NAMES})(\\?["']\s*:\s*\\?["'])[^"'\\]+""", rf"\1\2{SCRUBBED}"),
    _shape(
        "key pass pwd secret",
        rf"""((?:api[_-]?key|pass(?:word|wd|phrase)|pwd|client[_-]?secret)(?:\s+is|\s*:)\s+["']?){_VALUE}""",
        rf"\1{SCRUBBED}",
    ),
    _shape("key= sig=", r"""([?&](?:key|sig)=)[^\s&"'<>]+""", rf"\1{SCRUBBED}"),
    _OWN_KEYS,
    _shape(
        _BEGINNINGS,
        rf"\b(?:{'|'.join(_TOKENS)})",
    ),
    _shape("eyj", r"(?<![\w-])(?-i:eyJ)[\w-]{8,}\.[\w-]{8,}\.[\w-]*"),
)

_RANDOM = r"(?=[\w.~+/-]{0,200}\d)[\w.~+/=-]{16,}"
"""Long and with a digit: what a client's sentence goes on with after "bearer" is neither."""

CLIENT_SHAPES = (
    _shape("://", r"""(://)(?:[^\s/?#"'<>\\@:]*:[^\s/?#"'<>\\]+|[\w.~-]{16,})@""", rf"\1{SCRUBBED}@"),
    _shape(
        "authorization",
        r"""\b((?:proxy-)?authorization\\?["']?\s*[:=]\s*(?:b?\\?["'])?)"""
        r"""(?:(?:bearer|basic|token|apikey|negotiate|ntlm)\s+[\w.~+/=-][^\s"'\\,;()<>]*"""
        rf"""|(?:digest|signature|hmac[\w-]*|aws4[\w-]+)\s[^\r\n]+|{_RANDOM})""",
        rf"\1{SCRUBBED}",
    ),
    _shape("bearer", rf"\b(bearer\s+){_RANDOM}", rf"\1{SCRUBBED}"),
)
"""What is taken out of a client's own words: Authorization values and credentials in URLs. Tighter than what is taken
out of ours, for a summary of a text about such things should still be one: `git@` is a name, and no password."""

LABEL_SHAPES = (
    *CLIENT_SHAPES,
    _OWN_KEYS,
    _shape(_BEGINNINGS, rf"\b(?=[\w-]{{20}})(?=[\w-]{{0,200}}\d)(?:{'|'.join(_TOKENS)})"),
)
"""A label is a few words to find a task by: a key among them is there by mistake."""

_CLIENT_HINT = re.compile("://|authorization|bearer", re.IGNORECASE)
"""Of the shapes above. Most texts have none, and each of many thousands in a document is looked at."""
_LABEL_HINT = re.compile("|".join(re.escape(hint) for shape in LABEL_SHAPES for hint in shape.hints), re.IGNORECASE)
_URL_HINT = re.compile(rb"""://[^\s/?#"'<>\\]+@""")
_AUTHORIZATION_FIELD = re.compile(r"(?:proxy-)?authorization", re.IGNORECASE)

_SECRET_FIELD = re.compile(rf"(?:.*[_-])?(?:{_NAMES}|{_HEADERS}|cookie)", re.IGNORECASE | re.DOTALL)
_NEW_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


LEAST_OF_A_CLIENT_S_TEXT = 16
"""A configured secret shorter than this may be a word, `changeme`, that a client uses as well."""


class _Configured:
    """The secrets that this process was given, longest first: one may be a part of another."""

    secrets: tuple[str, ...] = ()
    long: tuple[str, ...] = ()
    """Those that are no words of a client's."""
    needles: tuple[bytes, ...] = ()
    """Those that are looked for in a client's text, as JSON writes them."""


def learn(secrets: Iterable[str]) -> None:
    """Called once as a process starts, with the values that its settings know."""
    _Configured.secrets = tuple(sorted({secret for secret in secrets if secret}, key=len, reverse=True))
    _Configured.long = tuple(secret for secret in _Configured.secrets if len(secret) >= LEAST_OF_A_CLIENT_S_TEXT)
    _Configured.needles = tuple(msgspec.json.encode(secret)[1:-1] for secret in _Configured.long)


def scrub(text: str) -> str:
    """For text that we write: errors, log lines, problem documents."""
    return _without(SHAPES, _without_configured(text, at_least=0))


def scrub_document(value: Any) -> Any:
    """The same for everything in a JSON document, and for whatever stands under a secret's name."""
    return _in_document(value, scrub, _scrub_field)


def redact(value: Any) -> Any:
    """For what others send us of their own accord: in addition, whatever stands under a secret's name is taken out
    whole, also where it is no text, and also where the name is written as `callbackApiKey`."""
    if isinstance(value, dict):
        return {scrub(name): _redact_field(name, below) for name, below in value.items()}
    return [redact(each) for each in value] if isinstance(value, list) else scrub_document(value)


def withhold(value: Any) -> Any:
    """For what belongs to the client (payload, result, output, progress): configured secrets, Authorization values and
    credentials in URLs are taken out, and nothing else is ours to change."""
    if not _may_hold_secrets(value):
        return value
    try:
        return _in_document(value, _withhold_text, _withhold_field)
    except RecursionError:
        return SCRUBBED  # nested so deeply that nobody can look through it, and something is in it


def withhold_label(text: str) -> str:
    """The same for the words that a task is found by: tags, names of projects and the like."""
    text = _without_configured(text, at_least=LEAST_OF_A_CLIENT_S_TEXT)
    return _without(LABEL_SHAPES, text) if _LABEL_HINT.search(text) else text


def _may_hold_secrets(value: Any) -> bool:
    """Looks at the whole at once: walking through a document takes ten times as long, and nearly none has one."""
    try:
        written = msgspec.json.encode(value)
    except RecursionError:
        return False  # nobody can write it down, so nobody will
    except (TypeError, ValueError):
        return True
    if any(needle in written for needle in _Configured.needles):
        return True
    lower = written.lower()
    if b"authorization" in lower or b"bearer" in lower:
        return True
    return b"@" in written and b"://" in written and _URL_HINT.search(written) is not None


def _withhold_text(text: str) -> str:
    if _CLIENT_HINT.search(text) is None and not any(secret in text for secret in _Configured.long):
        return text
    return _without(CLIENT_SHAPES, _without_configured(text, at_least=LEAST_OF_A_CLIENT_S_TEXT))


def _withhold_field(name: object, value: Any) -> Any:
    if isinstance(value, str) and value and _AUTHORIZATION_FIELD.fullmatch(str(name)):
        return SCRUBBED
    return _in_document(value, _withhold_text, _withhold_field)


def _without(shapes: Iterable[Shape], text: str) -> str:
    lower = text.lower()
    for shape in shapes:
        if any(hint in lower for hint in shape.hints):
            text = shape.pattern.sub(shape.replacement, text)
    return text


def _without_configured(text: str, *, at_least: int) -> str:
    for secret in _Configured.secrets:
        if len(secret) >= at_least and secret in text:
            text = text.replace(secret, SCRUBBED)
    return text


def _scrub_field(name: object, value: Any) -> Any:
    if isinstance(value, str) and value and _SECRET_FIELD.fullmatch(str(name)):
        return SCRUBBED
    return scrub_document(value)


def _redact_field(name: str, value: Any) -> Any:
    parted = _NEW_WORD.sub("_", name)
    return SCRUBBED if value not in (None, "") and _SECRET_FIELD.fullmatch(parted) else redact(value)


def _in_document(value: Any, clean: Callable[[str], str], clean_field: Callable[[object, Any], Any]) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(k) if isinstance(k, str) else k: clean_field(k, v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_in_document(each, clean, clean_field) for each in value]
    written = _as_written(value)
    return value if written is value else _in_document(written, clean, clean_field)


def _as_written(value: Any) -> Any:
    """What stands in JSON for a dataclass, a set or the like, whose insides would else not be looked at."""
    if value is None or isinstance(value, bool | int | float):
        return value
    try:
        written = msgspec.to_builtins(value)
    except (TypeError, ValueError):
        return value
    return value if type(written) is type(value) else written
