"""The promises that only Linux itself can give: between parent and child, and about who may look into a process."""

import ctypes
import os
import signal

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")


def adopt_orphans() -> None:
    """Every descendant whose own parent dies becomes our child, so that none can slip away."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent_pid: int, signum: signal.Signals) -> None:
    """Sends us this signal when the parent dies, also when it has died already."""
    _prctl(PR_SET_PDEATHSIG, signum)
    if os.getppid() != parent_pid:
        os.kill(os.getpid(), signum)


def keep_private() -> None:
    """Other processes of the same user can read neither our environment nor our memory any more, nor trace us.

    A forked child is as private; what a program is replaced by is not. Of a private process almost all below /proc
    belongs to root: others still see that it lives (`stat`, `cmdline`), it itself everything, but writes nothing there.
    """
    _prctl(PR_SET_DUMPABLE, 0)


def give_up_privacy() -> None:
    _prctl(PR_SET_DUMPABLE, 1)
