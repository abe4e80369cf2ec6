"""What is wrong with a definition, whoever wrote it: found before it is registered, and said in a sentence each."""

import re

from windlass.shared.actors.definition import Definition
from windlass.shared.actors.schemas import UnfitSchema, compiled
from windlass.shared.concurrency_keys import is_pointer

NAME = re.compile(r"[a-z][a-z0-9-]{0,40}")
RESERVED = {"batch", "bulk", "requeue-orphaned"}
"""Paths below `/tasks` that mean something else."""


def mistakes_in(definition: Definition) -> list[str]:
    return [f"{definition.name}: {each}" for each in _found_in(definition)]


def _found_in(definition: Definition) -> list[str]:
    found = []
    if not NAME.fullmatch(definition.name):
        found.append("an actor's name begins with a letter and has small letters, digits and hyphens, 41 at most")
    if definition.name in RESERVED:
        found.append(f"no actor can be called that, for `POST /tasks/{definition.name}` means something else")
    if definition.provider is not None and not NAME.fullmatch(definition.provider):
        found.append(f"its provider {definition.provider!r} cannot be called that: small letters, digits and hyphens")
    found += [
        f'its concurrency key {pointer!r} is no JSON Pointer; write "/account", or "/customer/account"'
        for pointer in definition.concurrency_key
        if not is_pointer(pointer)
    ]
    if definition.payload_schema.get("type") != "object":
        found.append("its payload's schema is not that of an object")
    try:
        compiled(definition.payload_schema)
    except UnfitSchema as error:
        found.append(str(error))
    return found
