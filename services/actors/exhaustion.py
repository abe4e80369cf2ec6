"""Whose fault a failure is when the process has run out of descriptors, room or memory: its own, not the task's."""

import errno
import os
from collections.abc import Iterator

LACKING = {
    errno.EMFILE: "this process has no file descriptors left",
    errno.ENFILE: "this machine has no file descriptors left",
    errno.ENOSPC: "the disk is full",
    errno.ENOMEM: "there is no memory left",
}


def lack_behind(error: BaseException) -> str | None:
    """What this process lacked when it met the error, however libraries and adapters have wrapped that; else none.

    A name cannot be looked up without descriptors either, and the resolver does not say why it failed: for errors of
    the system that say nothing, it is tried whether there are any.
    """
    met = [each for each in _behind(error) if isinstance(each, OSError)]
    said = next((LACKING[each.errno] for each in met if each.errno in LACKING), None)
    return said or (_lack_of_descriptors() if met else None)


def _behind(error: BaseException) -> Iterator[BaseException]:
    """The error, what it was raised from and while handling what, and the members of groups; each once."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        waiting += [each.__context__, each.__cause__]
        if isinstance(each, BaseExceptionGroup):
            waiting += each.exceptions


def _lack_of_descriptors() -> str | None:
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return LACKING.get(error.errno or 0)
    return None
