"""What a provider's action takes beside the prompt and the picture: declared once, and nothing else gets through."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError


class Params(BaseModel):
    """The parameters of one action. What a subclass does not declare a client cannot set: not the address that the
    provider calls back, not the picture that an order begins with, not the kind of work that it is.

    This one declares none. `model_json_schema()` of a subclass is what a form can be drawn from.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


@dataclass(frozen=True)
class Fault:
    """What is wrong with an order, and where: the path below its payload."""

    path: tuple[str | int, ...]
    detail: str


def actions_of(adapter: object) -> Mapping[str, type[Params]] | None:
    """What an adapter says that it can do; none from one that was written before it was asked."""
    declared: Mapping[str, type[Params]] | None = getattr(adapter, "actions", None)
    return declared


def faults_of(
    provider: str, actions: Mapping[str, type[Params]] | None, action: str, params: Mapping[str, Any]
) -> list[Fault]:
    """Every reason why a provider cannot be asked for this; an adapter that declares nothing takes no parameters."""
    if actions is None:
        return _unknown(f"{provider} takes no parameters: its adapter declares none", params)
    if action not in actions:
        return [Fault(("action",), f"{provider} does no {action}; it does {', '.join(sorted(actions))}")]
    declared = actions[action]
    allowed = ", ".join(sorted(declared.model_fields)) or "none"
    unknown = _unknown(f"{provider} takes no such parameter for {action}; allowed: {allowed}", params, declared)
    return [*unknown, *_misfits(declared, params)]


def _unknown(detail: str, params: Mapping[str, Any], declared: type[Params] = Params) -> list[Fault]:
    return [Fault(("params", name), detail) for name in params if name not in declared.model_fields]


def _misfits(declared: type[Params], params: Mapping[str, Any]) -> Iterator[Fault]:
    try:
        declared.model_validate({name: params[name] for name in declared.model_fields if name in params})
    except ValidationError as error:
        for each in error.errors(include_url=False, include_context=False, include_input=False):
            yield Fault(("params", *each["loc"]), each["msg"])
