"""Python imports this by itself in a process that finds it on its path: there the probe is an actor that leaks.

The canaries come by the environment, so that no source line in a stack trace has them.
"""

import os
from typing import Any

from windlass.actors import actor
from windlass.services.actors import probe
from windlass.services.actors.worker.context.context import Context
from windlass.shared.actors.payloads import ProbePayload
from windlass.shared.errors import InvalidInput

CANARIES = {name: value for name, value in os.environ.items() if name.startswith("CANARY_")}
"""As the process was started: the worker takes what is a provider's key out of its environment."""


def leak(context: Context, payload: ProbePayload) -> dict[str, Any]:
    assert "CANARY_PROVIDER_KEY" not in os.environ
    assert "WINDLASS_DATABASE_URL" not in os.environ
    canary = CANARIES.__getitem__
    context.progress(f"asking with {canary('CANARY_PROVIDER_KEY')}")
    context.output(f"the key is {canary('CANARY_PROVIDER_KEY')}\n")
    context.output(f"> Authorization: Bearer {canary('CANARY_MESSAGE')}\n")
    context.save({"key": canary("CANARY_PROVIDER_KEY"), "url": f"https://me:{canary('CANARY_URL')}@example.org"})
    if payload.outcome == "ok":
        sent = {"Authorization": canary("CANARY_HEADER"), "url": f"https://me:{canary('CANARY_URL')}@example.org"}
        return {"said": [f"it was {canary('CANARY_PROVIDER_KEY')}"], "sent": sent}
    try:
        raise ConnectionError(  # noqa: TRY301 - a chain of two, as libraries raise them
            f"cannot reach amqp://windlass:{canary('CANARY_STACK_TRACE')}@10.0.0.1:5672"
        )
    except ConnectionError as error:
        message = f"refused: Authorization: Bearer {canary('CANARY_MESSAGE')}"
        url = f"https://me:{canary('CANARY_URL')}@example.org/v1?size=2&api_key={canary('CANARY_QUERY')}"
        raise InvalidInput(message, url=url, headers={"Authorization": canary("CANARY_HEADER")}) from error


probe.probe = actor(name="probe")(leak)
