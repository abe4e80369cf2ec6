"""A document that somebody has written into a file: YAML, of which JSON is a part."""

import re
import sys
from pathlib import Path
from typing import Any

import yaml

TAG = "tag:yaml.org,2002:"
READ_ANEW = (
    ("bool", r"true|false", "tf"),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("timestamp", "", ""),
)
"""What PyYAML reads as version 1.1 has it, and JSON does not: `on` is a truth value there, and `12:30` is 750."""


class Unreadable(ValueError):
    """No document; the message says why."""


def _resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """By the first letter of what is to be read, as PyYAML wants them."""
    ours = {TAG + kind for kind, *_ in READ_ANEW}
    made = {
        first: [each for each in resolvers if each[0] not in ours]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    for kind, pattern, letters in READ_ANEW:
        for letter in letters:
            made.setdefault(letter, []).append((TAG + kind, re.compile(f"(?:{pattern})$")))
    return made


class Loader(yaml.SafeLoader):
    """As YAML 1.2 reads it: `on: ended` names a field, and a date is a text, as in JSON."""

    yaml_implicit_resolvers = _resolvers()


def document_from(path: str) -> Any:
    """What stands in a file, or comes by standard input (`-`). Raises Unreadable."""
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text()
        return yaml.load(text, Loader)  # noqa: S506 - it is a safe one
    except (OSError, UnicodeDecodeError) as error:
        raise Unreadable(f"cannot read {path}: {getattr(error, 'strerror', error)}") from None
    except yaml.YAMLError as error:
        said = " ".join(str(error).split())
        raise Unreadable(f"neither YAML nor JSON: {said}") from None
