"""The outside: public addresses and no others, for an agent that may use the network, by way of slirp4netns.

Bubblewrap gives the agent a network of its own and waits; the keeper shuts what is private there, has slirp4netns put
the way out into it, and lets the agent begin. What fails leaves it without a network, never with the machine's.
"""

import ctypes
import fcntl
import json
import os
import select
import shutil
import socket
import struct
import subprocess
import time
from ipaddress import IPv4Network

from windlass.shared.process.procfs import namespace_of

INFO_FD, BLOCK_FD, RESOLVER_FD = 10, 11, 12
"""Where bubblewrap finds the pipes of its keeper."""

PROCESSES = 2
"""Slirp4netns, and at its start one more of it."""

PRIVATE = tuple(map(IPv4Network, ("10.0.0.0/8", "100.64.0.0/10", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16")))
"""Not to be reached. What slirp4netns itself needs, its name server and its gateway, is a narrower network in the
first; the machine's loopback is not behind that gateway (`--disable-host-loopback`), and the agent's own is its own."""

RESOLVER = b"nameserver 10.0.2.3\n"
START_SECONDS = 10
ABOVE_THE_FIXED_ONES = 20
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
RTM_NEWROUTE, NLM_F_REQUEST_ACK_CREATE, NLMSG_ERROR = 24, 0x405, 2
SIOCGIFFLAGS, IFF_UP = 0x8913, 1
RT_TABLE_MAIN, RTPROT_STATIC, RTN_PROHIBIT, RTA_DST = 254, 4, 8, 1


def find() -> str | None:
    return shutil.which("slirp4netns")


def for_bubblewrap() -> tuple[str, ...]:
    """After the files of the system: names are asked for where slirp4netns listens."""
    pipes = ("--info-fd", str(INFO_FD), "--block-fd", str(BLOCK_FD))
    return ("--unshare-net", *pipes, "--perms", "0644", "--ro-bind-data", str(RESOLVER_FD), "/etc/resolv.conf")


class WayOut:
    """One agent's: made before it is started, opened once it waits, closed when it has ended or its keeper has."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._info, self._info_theirs = _pipe()
        self._block_theirs, self._block = _pipe()
        self._ending, self._end = _pipe()
        self._resolver, written = _pipe()
        os.write(written, RESOLVER)
        os.close(written)

    def hand_over(self) -> None:
        """In the process that becomes bubblewrap."""
        os.dup2(self._info_theirs, INFO_FD)
        os.dup2(self._block_theirs, BLOCK_FD)
        os.dup2(self._resolver, RESOLVER_FD)

    def open(self) -> str | None:
        """Why it could not be, or none; the agent begins either way."""
        os.close(self._info_theirs)
        os.close(self._block_theirs)
        os.close(self._resolver)
        try:
            return self._lead_out(_read_all(self._info))
        finally:
            os.close(self._info)
            os.close(self._ending)
            os.close(self._block)  # at its end bubblewrap goes on

    def close(self) -> None:
        os.close(self._end)

    def _lead_out(self, info: bytes) -> str | None:
        if not info:
            return None  # bubblewrap itself has failed, and says why
        pid = int(json.loads(info)["child-pid"])
        if not _shut_what_is_private(pid):
            return "private addresses could not be shut"
        ready, ready_theirs = _pipe()
        options = ("--configure", "--mtu=65520", "--disable-host-loopback")
        descriptors = (f"--ready-fd={ready_theirs}", f"--exit-fd={self._ending}")
        try:
            subprocess.Popen(
                [self._program, *options, *descriptors, str(pid), "tap0"],
                pass_fds=(ready_theirs, self._ending),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
            )
        except OSError as error:
            return f"slirp4netns could not be started ({error})"
        finally:
            os.close(ready_theirs)
        try:
            heard, _, _ = select.select([ready], [], [], START_SECONDS)
            return None if heard and os.read(ready, 1) else "slirp4netns did not begin"
        finally:
            os.close(ready)


def _shut_what_is_private(pid: int) -> bool:
    """In the network of that process, which only a process of its own can enter and leave again."""
    entering = os.fork()
    if entering == 0:
        code = 1
        try:
            _enter(pid)
            _wait_for_loopback()
            with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
                code = 0 if all(_prohibit(kernel, network) for network in PRIVATE) else 1
        finally:
            os._exit(code)
    _, status = os.waitpid(entering, 0)
    return status == 0


def _enter(pid: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    for name, kind in (("user", CLONE_NEWUSER), ("net", CLONE_NEWNET)):
        theirs = namespace_of(pid, name)
        if os.stat(theirs).st_ino == os.stat(namespace_of(os.getpid(), name)).st_ino:  # noqa: PTH116 - links into the kernel
            continue
        descriptor = os.open(theirs, os.O_RDONLY)
        if libc.setns(descriptor, kind) != 0:
            raise OSError(ctypes.get_errno(), f"setns to {theirs} failed")
        os.close(descriptor)


def _wait_for_loopback() -> None:
    """Bubblewrap names its child before that has made its loopback. Slirp4netns makes one, too, where there is none,
    and whoever comes second fails."""
    deadline = time.monotonic() + START_SECONDS
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        while (
            not struct.unpack_from("16xH", fcntl.ioctl(asking, SIOCGIFFLAGS, struct.pack("16s24x", b"lo")))[0] & IFF_UP
        ):
            if time.monotonic() > deadline:
                raise TimeoutError("bubblewrap has not made a loopback")
            time.sleep(0.001)


def _prohibit(kernel: socket.socket, network: IPv4Network) -> bool:
    """A route that leads nowhere: who takes it is told so at once."""
    route = struct.pack(
        "=BBBBBBBBI", socket.AF_INET, network.prefixlen, 0, 0, RT_TABLE_MAIN, RTPROT_STATIC, 0, RTN_PROHIBIT, 0
    ) + struct.pack("=HH4s", 8, RTA_DST, network.network_address.packed)
    kernel.send(struct.pack("=IHHII", 16 + len(route), RTM_NEWROUTE, NLM_F_REQUEST_ACK_CREATE, 1, 0) + route)
    answer = kernel.recv(4096)
    _, kind, _, _, _, error = struct.unpack_from("=IHHIIi", answer)
    return (kind, error) == (NLMSG_ERROR, 0)


def _pipe() -> tuple[int, int]:
    """Both ends out of the way of the fixed numbers."""
    moved = []
    for descriptor in os.pipe():
        moved.append(fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, ABOVE_THE_FIXED_ONES))
        os.close(descriptor)
    return moved[0], moved[1]


def _read_all(descriptor: int) -> bytes:
    pieces = []
    while piece := os.read(descriptor, 4096):
        pieces.append(piece)
    return b"".join(pieces)
