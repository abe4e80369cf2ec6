"""From what somebody says of an item to the whole task that its run will submit, or to what is wrong with it."""

from typing import Any

import msgspec
from pydantic import BaseModel, ValidationError
from uuid_utils.compat import uuid7

from windlass.services.api.access.auth import Caller
from windlass.services.api.http.bodies import field_problem
from windlass.services.api.http.errors import invalid_fields, problem_of
from windlass.services.api.projects.schemas import MOST_ITEMS, NewItem, NewItems
from windlass.services.api.tasks.submission import accept
from windlass.shared.scrubbing import withhold
from windlass.shared.settings import Settings
from windlass.shared.submission.known import Actors
from windlass.shared.submission.refusal import Refused
from windlass.shared.submission.rules import refuse_large_payload

PER_RUN = ("task_id", "user_id", "reach", "traceparent", "dedupe_ttl_seconds")
"""What of a submission is given when the run begins, or means nothing to it."""


def read_items(body: Any) -> list[tuple[str, Any]]:
    """Each with where it stands in the body: one alone, or a list."""
    if isinstance(body, dict) and "items" in body:
        if isinstance(body["items"], list) and not 0 < len(body["items"]) <= MOST_ITEMS:
            raise field_problem("/items", "invalid-item", f"it is a list of 1 to {MOST_ITEMS} items")
        return [(f"/items/{number}", item) for number, item in enumerate(_checked(NewItems, body).items)]
    return [("", _checked(NewItem, body))]


def _checked(model: type[BaseModel], body: Any) -> Any:
    try:
        return model.model_validate(body)
    except ValidationError as error:
        raise invalid_fields(error, "invalid-item", model) from error


def written(
    given: dict[str, Any],
    defaults: dict[str, Any],
    *,
    caller: Caller,
    settings: Settings,
    actors: Actors,
    below: str = "",
) -> dict[str, Any]:
    """`given` and `task`, as they are stored. Checked as every task is at its submit; the claim checks once more."""
    merged = merge(defaults, given)
    submission = msgspec.to_builtins(accept(merged, caller, settings, actors, below=below))
    task = {name: value for name, value in submission.items() if name not in PER_RUN}
    return {"given": withhold(given), "task": task}


def new_item(title: str | None, stored: dict[str, Any]) -> dict[str, Any]:
    return {"item_id": uuid7(), "title": title, **stored}


def fields_of(item: Any, settings: Settings, below: str = "") -> dict[str, Any]:
    """The fields of the task itself that the request gives. `below` is where in the body the item stands."""
    try:
        refuse_large_payload(item.payload or {}, settings, f"{below}/payload")
    except Refused as refused:
        raise problem_of(refused) from refused
    said = item.model_dump(mode="json", exclude_unset=True)
    return {name: value for name, value in said.items() if name not in {"title", "before", "after"}}


def merge(defaults: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The item wins; `payload` merges one level deep, `tags` join."""
    merged = {name: value for name, value in {**defaults, **given}.items() if value is not None}
    both = (defaults, given)
    if any("payload" in each for each in both):
        merged["payload"] = {name: value for each in both for name, value in (each.get("payload") or {}).items()}
    if any("tags" in each for each in both):
        merged["tags"] = list(dict.fromkeys(tag for each in both for tag in each.get("tags") or ()))
    return merged
