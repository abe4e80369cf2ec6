"""`python -m tests.support.providers.counting_worker`: `windlass worker` whose probes call a counting provider.

Guardian and worker are the real ones; only where a probe sleeps, it asks the provider at `COUNTING_PROVIDER` to work
for as long instead. So what runs is counted by the other side.
"""

import http.client
import json
import os
import select
import sys
from contextlib import closing
from typing import Any

from windlass.actors import actor
from windlass.services.actors import main as worker
from windlass.services.actors import probe
from windlass.services.actors.guardian import Guardian
from windlass.services.actors.worker.context.context import Context
from windlass.shared.actors.payloads import ProbePayload
from windlass.shared.process import logs
from windlass.shared.settings import Settings

CHECK_SECONDS = 0.05


def counted_probe(context: Context, payload: ProbePayload) -> dict[str, Any]:
    order = {"task_id": str(context.task_id), "attempt": context.task.attempt, "seconds": payload.seconds}
    with closing(http.client.HTTPConnection(os.environ["COUNTING_PROVIDER"], timeout=10)) as connection:
        connection.request("POST", "/", json.dumps(order))
        while not select.select([connection.sock], [], [], CHECK_SECONDS)[0]:
            context.check()
        assert connection.getresponse().status == 204
    return {"echo": payload.result, "attempt": context.task.attempt, "worker_id": context.worker_id}


def main() -> None:
    if len(sys.argv) > 1:  # started by the guardian below
        probe.probe = actor(name="probe")(counted_probe)
        worker.main()
    else:
        settings = Settings()
        logs.start(settings, "guardian")
        Guardian(settings, worker="tests.support.providers.counting_worker").run()


if __name__ == "__main__":
    main()
