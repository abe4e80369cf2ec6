"""What a provider of media can be asked for, as its adapter declares it: checked before a task is taken."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from windlass.shared.errors import TaskError, words_of
from windlass.shared.settings import Settings
from windlass.shared.submission.refusal import Refused, Wrong, pointer_to

if TYPE_CHECKING:
    from windlass.shared.providers.params import Params

log = logging.getLogger("submission")


def refuse_what_it_does_not_take(
    action: str, params: dict[str, Any], provider: str, settings: Settings, below: str
) -> None:
    """Names every parameter that the action does not know. An adapter that cannot be loaded here is the worker's to
    complain of, which looks at the same declaration before it orders anything."""
    # Whoever makes no media does without the adapters and what they import.
    from windlass.shared.providers.params import faults_of  # noqa: PLC0415

    try:
        actions = _actions(settings, provider)
    except TaskError as error:
        log.warning("what %s takes is not known here: %s", provider, words_of(error))
        return
    except Exception as error:  # noqa: BLE001 - an adapter may be anybody's, and is imported here for the first time
        log.warning("what %s takes is not known here: %s", provider, words_of(error))
        return
    faults = faults_of(provider, actions, action, params)
    if faults:
        raise Refused("invalid-payload", (Wrong(pointer_to(each.path, below), each.detail) for each in faults))


def _actions(settings: Settings, provider: str) -> "Mapping[str, type[Params]] | None":
    from windlass.shared.providers.params import actions_of  # noqa: PLC0415
    from windlass.shared.providers.registry import adapter_of  # noqa: PLC0415

    return actions_of(adapter_of(settings, provider))
