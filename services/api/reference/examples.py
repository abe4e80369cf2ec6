"""Examples made from the document itself: a curl line for a call, and what an answer may look like."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

HOST = "$WINDLASS_URL"
KEY = '-H "Authorization: Bearer $WINDLASS_API_KEY"'
TASK_ID = "01890a5d-ac96-774b-bcce-b302099a8057"
BY_FORMAT = {"uuid": TASK_ID, "date-time": "2030-01-31T12:00:00Z", "date": "2030-01-31"}
IN_PATHS = {
    "name": "leonardo", "key_id": "abc123", "token": "TOKEN", "workflow_run_id": "run-7", "worker_id": "box-47-a1b2c3",
}  # fmt: skip
DEEPEST = 4
A_FILE = "-H 'Content-Type: image/png' --data-binary @picture.png"


def curl_line(method: str, path: str, operation: Mapping[str, Any]) -> str:
    """As it can be pasted, with the address and the key in two variables."""
    for parameter in operation.get("parameters", []):
        if parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", IN_PATHS.get(parameter["name"], TASK_ID))
    words = ["curl"]
    words += ["-N"] if path.endswith("/stream") else []
    words += ["-X", method.upper()] if method not in {"get", "post"} or "requestBody" not in operation else []
    if words[-2:] == ["-X", "GET"]:
        words = words[:-2]
    words.append(f'"{HOST}{path}"')
    words += [KEY] if operation.get("security") else []
    if "requestBody" in operation:
        ((media_type, content),) = operation["requestBody"]["content"].items()
        said = f"--json {shlex.quote(json.dumps(content.get('example', {}), ensure_ascii=False))}"
        words.append(said if media_type == "application/json" else A_FILE)
    return " ".join(words)


def example_of(schema: Any, shapes: Mapping[str, Any], depth: int = 0, seen: tuple[str, ...] = ()) -> Any:
    """One value of a schema: its own example where it has one, else the plainest that there is. The schemas of actors
    are anybody's: what goes round in circles, or leads somewhere else, has none."""
    match schema:
        case {"$ref": str(reference)}:
            name = reference.rpartition("/")[2]
            return None if name in seen else example_of(shapes.get(name), shapes, depth, (*seen, name))
        case {"examples": [first, *_]} | {"const": first} | {"enum": [first, *_]}:
            return first
        case {"anyOf": [first, *_]} | {"oneOf": [first, *_]} | {"allOf": [first, *_]}:
            return example_of(first, shapes, depth, seen)
        case {"type": "object", "properties": properties} if depth < DEEPEST:
            needed = schema.get("required", [])
            return {
                name: example_of(below, shapes, depth + 1, seen) for name, below in properties.items() if name in needed
            }
        case {"type": "array", "items": items} if depth < DEEPEST:
            return [example_of(items, shapes, depth + 1, seen)]
        case _:
            return _plainest(schema)


def _plainest(schema: Any) -> Any:
    kind = schema.get("type") if isinstance(schema, dict) else None
    if isinstance(kind, list):
        return _plainest({**schema, "type": next(iter(kind), None)})
    if kind == "string":
        return BY_FORMAT.get(schema.get("format", ""), "…")
    return {"integer": 1, "number": 1.5, "boolean": False, "array": [], "object": {}}.get(str(kind))
