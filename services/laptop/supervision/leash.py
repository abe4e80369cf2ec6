"""Becomes a program that cannot outlive its parent: `leash.py PARENT SIGNAL UID:GID|- PROGRAM ARGUMENT…`."""

# A program of its own, because the alternative, `preexec_fn`, runs Python in the forked copy of a process with threads.
# Started with `python -I -S`: the standard library only.
import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, death_signal, account, *command = sys.argv[1:]
    # Started by a script with `&` or nohup, the supervisor inherited ignored signals; its children must not.
    for signum in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(signum, signal.SIG_DFL)
    if account != "-":
        uid, gid = map(int, account.split(":"))
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    # After the change of user, which would clear it.
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    # A parent that died before the line above sends no signal any more.
    if os.getppid() != int(parent):
        sys.exit("windlass: the process that started this one is gone")
    os.execvp(command[0], command)  # noqa: S606 - to become that program is the whole point


if __name__ == "__main__":
    main()
