"""Whose fault a failure is when the process has run out of descriptors, room or memory: its own, not the task's."""

import errno
import os
import re
from collections.abc import Iterator

LACKING = {
    errno.EMFILE: "this process has no file descriptors left",
    errno.ENFILE: "this machine has no file descriptors left",
    errno.ENOSPC: "the disk is full",
    errno.ENOMEM: "there is no memory left",
}
OF_THE_STORAGE = re.compile(r"\(os error (\d+)\)")


def lack_behind(error: BaseException) -> str | None:
    """What this process lacked when it met the error, however libraries and adapters have wrapped that; else none.

    A name cannot be looked up without descriptors either, and the resolver does not say why it failed: for errors of
    the system that say nothing, it is tried whether there are any.
    """
    numbers = [number for each in _behind(error) if (number := _number_of(each)) is not None]
    said = next((LACKING[number] for number in numbers if number in LACKING), None)
    return said or (_lack_of_descriptors() if numbers else None)


def _number_of(error: BaseException) -> int | None:
    """What the system called it; the library behind the storage, which is none of Python's, has it in its text."""
    if isinstance(error, OSError):
        return error.errno or 0
    told = OF_THE_STORAGE.search(str(error)) if type(error).__module__.startswith("obstore") else None
    return int(told[1]) if told else None


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
