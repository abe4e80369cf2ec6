"""What is wrong with a definition, whoever wrote it: found before it is registered, and said in a sentence each."""

from windlass.actors.names import fault_of, has_shape
from windlass.shared.actors.definition import Definition
from windlass.shared.actors.schemas import UnfitSchema, compiled
from windlass.shared.concurrency_keys import is_pointer


def mistakes_in(definition: Definition) -> list[str]:
    return [f"{definition.name}: {each}" for each in _found_in(definition)]


def _found_in(definition: Definition) -> list[str]:
    found = []
    if fault := fault_of(definition.name):
        found.append(f"an actor's name {fault}")
    if definition.provider is not None and not has_shape(definition.provider):
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
