"""`python -m bench.peers.noting_worker`: what `windlass worker` becomes, but its probes note their start in a file.

So the start of Windlass' tasks is taken inside the task by the same clock as everybody else's. Guardian and worker are
the real ones. The probe's `result` says where to note and under which key; one that says nothing of it is as ever.
"""

import sys
from typing import Any

from bench.peers.tasks import note
from windlass.actors import actor
from windlass.services.actors import main as worker
from windlass.services.actors import probe
from windlass.services.actors.guardian import Guardian
from windlass.services.actors.worker.context.context import Context
from windlass.shared.actors.payloads import ProbePayload
from windlass.shared.process import logs
from windlass.shared.settings import Settings

as_ever = probe.probe.fn


def noting_probe(context: Context, payload: ProbePayload) -> dict[str, Any]:
    if isinstance(payload.result, dict) and "notes" in payload.result:
        note(payload.result["notes"], payload.result["key"], 0)
    return as_ever(context, payload)


def main() -> None:
    if len(sys.argv) > 1:  # started by the guardian below
        probe.probe = actor(name="probe")(noting_probe)
        worker.main()
    else:
        settings = Settings()
        logs.start(settings, "guardian")
        Guardian(settings, worker="bench.peers.noting_worker").run()


if __name__ == "__main__":
    main()
