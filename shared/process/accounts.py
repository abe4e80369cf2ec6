"""The unprivileged accounts that root lends to what must not run as root: its Postgres, and agents."""

import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FOR_POSTGRES: Final = ("postgres", "nobody")
FOR_AGENTS: Final = ("windlass-agent", "nobody", "daemon")
"""Whoever makes an account of the first name has one for agents alone."""


@dataclass(frozen=True)
class Account:
    name: str
    uid: int
    gid: int

    def can_reach(self, directory: Path) -> bool:
        """Asked of the kernel, which knows about every mode, group and mount on the way."""
        return self._passes("-x", directory)

    def can_read(self, path: Path) -> bool:
        return self._passes("-r", path)

    def _passes(self, test: str, path: Path) -> bool:
        found = subprocess.run(
            ["/usr/bin/test", test, path],
            user=self.uid,
            group=self.gid,
            extra_groups=[],
            cwd="/",
            check=False,
        )
        return found.returncode == 0


def account_for_postgres() -> Account | None:
    """None for an ordinary user, who runs Postgres as himself."""
    return _first_of(FOR_POSTGRES, "Postgres does not run as root") if os.geteuid() == 0 else None


def account_for_agents() -> Account | None:
    """None for an ordinary user, whose agents run as himself. Never the one that Postgres has: to whom the database's
    files belong, its passwords are nothing."""
    if os.geteuid() != 0:
        return None
    taken = next((name for name in FOR_POSTGRES if _entry(name)), None)
    return _first_of(tuple(name for name in FOR_AGENTS if name != taken), "agents do not run as root")


def _first_of(names: tuple[str, ...], reason: str) -> Account:
    for name in names:
        if entry := _entry(name):
            return Account(name, entry.pw_uid, entry.pw_gid)
    raise LookupError(f"{reason}, and there is no user {' or '.join(names)}")


def _entry(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None
