"""The filter of system calls inside a sandbox: no user namespaces, and no memory that belongs to no process.

Root in a namespace of its own reaches parts of the kernel that others do not. Bubblewrap's `--disable-userns` needs a
writable /proc/sys, which containers do not have, and does not work for root; a filter works everywhere.

Memory behind a descriptor (`memfd_create`) or a System V segment (`shmget`) is in no process' size, so that a limit
cannot count it reliably: a descriptor can even be on its way through a socket. Programs fall back to /dev/shm, which
has a size of its own, or fail.
"""

import errno
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

FILTER_FD = 13
"""Where bubblewrap finds the filter."""

CLONE_NEWUSER = 0x10000000
CALL, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16
LOAD, JUMP_IF_EQUAL, JUMP_IF_ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000
X32 = 0x40000000
CLONE3, MEMFD_SECRET = 435, 447


@dataclass(frozen=True)
class Calls:
    """The numbers of one architecture's calls."""

    with_flags: tuple[int, ...]
    """`clone` and `unshare`, whose flags are their first argument."""
    unsupported: tuple[int, ...]
    """`memfd_create`, `shmget` and what else is answered as by a kernel without it."""


CALLS = {
    0xC000003E: Calls((56, 272), (319, 29)),  # x86_64
    0x40000003: Calls((120, 310), (356, 395, 117)),  # i386, with its older way to shmget
    0xC00000B7: Calls((220, 97), (279, 194)),  # aarch64
    0x40000028: Calls((120, 337), (385, 307)),  # arm
    0xC00000F3: Calls((220, 97), (279, 194)),  # riscv64
}
X86_64 = 0xC000003E


def program() -> bytes:
    """In the kernel's format: operation, how far to jump if true and if false, value.

    `clone3` has its flags in memory, where a filter cannot look; without it, libc uses `clone`.
    """
    steps = [(LOAD, 0, 0, ARCHITECTURE)]
    for architecture, calls in CALLS.items():
        variants = (0, X32) if architecture == X86_64 else (0,)  # x32: programs with short pointers
        judged = [(number + variant, True) for number in calls.with_flags for variant in variants]
        unsupported = (*calls.unsupported, CLONE3, MEMFD_SECRET)
        judged += [(number + variant, False) for number in unsupported for variant in variants]
        checks = [(LOAD, 0, 0, CALL)]
        for place, (number, has_flags) in enumerate(judged):
            # Behind the checks: allowed, the look at the flags with its two ends, unsupported.
            checks.append((JUMP_IF_EQUAL, len(judged) - place - 1 + (1 if has_flags else 5), 0, number))
        checks += [
            (RETURN, 0, 0, ALLOW),
            (LOAD, 0, 0, FIRST_ARGUMENT),
            (JUMP_IF_ANY_BIT, 1, 0, CLONE_NEWUSER),
            (RETURN, 0, 0, ALLOW),
            (RETURN, 0, 0, FAIL | errno.EPERM),
            (RETURN, 0, 0, FAIL | errno.ENOSYS),
        ]
        steps += [(JUMP_IF_EQUAL, 0, len(checks), architecture), *checks]
    steps.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


@contextmanager
def readable() -> Iterator[int]:
    """A descriptor from which the filter can be read once."""
    ours, theirs = os.pipe()
    os.write(theirs, program())
    os.close(theirs)
    try:
        yield ours
    finally:
        os.close(ours)


def hand_over() -> None:
    """In the process that becomes bubblewrap."""
    with readable() as descriptor:
        os.dup2(descriptor, FILTER_FD)
