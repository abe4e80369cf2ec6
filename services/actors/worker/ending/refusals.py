"""A payload that this worker's version of an actor refuses, though it was accepted: who else may take it?"""

import logging

from windlass.services.actors.worker.context.context import Context, Stopped
from windlass.services.actors.worker.metrics import left_to_another_version
from windlass.shared.actors.versions import Sibling, after_a_refusal
from windlass.shared.store.operating import registry
from windlass.shared.store.operating.registry import RegisteredVersion
from windlass.shared.submission.known import version_of


class HandedBack(Stopped):
    """Nothing is wrong with the task, and it is not this attempt that does it: for free, however often."""


class ForAnotherVersion(HandedBack):
    """This worker is not the one to do it."""


log = logging.getLogger("actors")


def refusal_of(
    context: Context, own: str, why: str, *, heard_within_seconds: float, pointer: str = ""
) -> BaseException:
    """What the attempt ends with: ForAnotherVersion, so that the task is handed back, or
    InvalidInput. It costs a question of the store, and nobody asks it whose payload is as it should be."""
    task = context.task
    rows = context.ask(registry.read, heard_within_seconds=heard_within_seconds, actor=task.actor)
    siblings = [
        Sibling(row.version, lives=bool(row.workers), takes=takes(row, task.payload))
        for row in rows
        if row.version != own
    ]
    refusal = after_a_refusal(task.actor, own, why, siblings, pointer=pointer)
    if refusal is not None:
        return refusal
    log.info("task %s: version %s of %s hands it back, for another takes it (%s)", task.task_id, own, task.actor, why)
    left_to_another_version(task.actor)
    return ForAnotherVersion()


def takes(row: RegisteredVersion, payload: object) -> bool:
    """One that cannot be read here takes nothing that we know of."""
    version = version_of(row)
    return version is not None and version.takes(payload)
