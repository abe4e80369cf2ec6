"""A filter of system calls by which nothing inside a sandbox makes user namespaces, in which it would be root.

Root in a namespace of its own reaches parts of the kernel that others do not. Bubblewrap's `--disable-userns` needs a
writable /proc/sys, which containers do not have, and does not work for root; a filter works everywhere.
"""

import errno
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager

FILTER_FD = 13
"""Where bubblewrap finds the filter."""

CLONE_NEWUSER = 0x10000000
CALL, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16
LOAD, JUMP_IF_EQUAL, JUMP_IF_ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000
X32 = 0x40000000
CLONE3 = 435

CALLS = {
    0xC000003E: ((56, 272), (56 + X32, 272 + X32)),  # x86_64, and its programs with short pointers
    0x40000003: ((120, 310),),  # i386
    0xC00000B7: ((220, 97),),  # aarch64
    0x40000028: ((120, 337),),  # arm
    0xC00000F3: ((220, 97),),  # riscv64
}
"""The numbers of `clone` and `unshare`, whose flags are their first argument, by architecture. `clone3` has its flags
in memory, where a filter cannot look: it is answered as by a kernel without it, and libc then uses `clone`."""


def program() -> bytes:
    """In the kernel's format: operation, how far to jump if true and if false, value."""
    steps = [(LOAD, 0, 0, ARCHITECTURE)]
    for architecture, pairs in CALLS.items():
        numbers = [number for pair in pairs for number in pair]
        unsupported = [CLONE3, CLONE3 + X32] if len(pairs) > 1 else [CLONE3]
        checks = [(LOAD, 0, 0, CALL)]
        length = len(numbers) + len(unsupported)
        for place, number in enumerate([*numbers, *unsupported]):
            # Behind the checks: allowed, the look at the flags, refused, unsupported.
            ahead = length - place - 1
            checks.append((JUMP_IF_EQUAL, ahead + (1 if number in numbers else 5), 0, number))
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
