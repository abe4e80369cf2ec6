"""The unprivileged account that root lends to servers which must not run as root."""

import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Account:
    name: str
    uid: int
    gid: int

    def can_reach(self, directory: Path) -> bool:
        """Asked of the kernel, which knows about every mode, group and mount on the way."""
        found = subprocess.run(
            ["/usr/bin/test", "-x", directory],
            user=self.uid,
            group=self.gid,
            extra_groups=[],
            cwd="/",
            check=False,
        )
        return found.returncode == 0


def account_for_postgres() -> Account | None:
    """None for an ordinary user, who runs Postgres as himself."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(name, entry.pw_uid, entry.pw_gid)
    raise LookupError("Postgres does not run as root, and there is neither a user postgres nor nobody")
