"""Python imports this by itself in a process that finds it on its path: there a probe may use up all descriptors."""

import os
import resource
from typing import Any

from windlass.actors import actor
from windlass.services.actors import probe
from windlass.services.actors.worker.context.context import Context
from windlass.shared.actors.payloads import ProbePayload
from windlass.shared.errors import NetworkTimeout

patient = probe.probe


def exhaust(context: Context, payload: ProbePayload) -> dict[str, Any]:
    """At its first attempt; the limit is this process' own, and the next one has its whole again."""
    if payload.result == "exhaust" and context.task.attempt == 1:
        unused = os.dup(0)
        os.close(unused)
        resource.setrlimit(resource.RLIMIT_NOFILE, (unused, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        try:
            os.dup(0)
        except OSError as error:
            raise NetworkTimeout("the provider could not be reached") from error  # as an adapter calls it
    return patient(context, payload)


probe.probe = actor(name="probe")(exhaust)
