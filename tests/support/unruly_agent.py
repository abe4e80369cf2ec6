"""An agent that does what `params.do` says, mostly what no agent should; started by Windlass, never by a test itself.

Standard library only. It says which processes it has started, `pid NUMBER` a line, as it sees them itself.
"""

import contextlib
import ctypes
import errno
import json
import mmap
import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MEGABYTE = 2**20


def main() -> None:
    order: dict[str, Any] = json.load(sys.stdin)
    params = order["params"]
    say(f"pid {os.getpid()}")
    globals()[f"do_{params['do']}"](order, params)


def do_tell(order: dict[str, Any], _params: dict[str, Any]) -> None:
    Path("left-behind").write_text("a file")
    told = {"order": order, "environment": dict(os.environ), "directory": str(Path.cwd()), "session": os.getsid(0)}
    say(json.dumps(told))


def do_print(_order: dict[str, Any], params: dict[str, Any]) -> None:
    say(params["text"], end="")
    print(params.get("stderr", ""), end="", file=sys.stderr, flush=True)
    if signum := params.get("signal"):
        os.kill(os.getpid(), signum)
    sys.exit(params.get("exit", 0))


def do_drip(_order: dict[str, Any], params: dict[str, Any]) -> None:
    for number in range(params["lines"]):
        say(str(number))
        time.sleep(params["pause"])


def do_sleep(_order: dict[str, Any], params: dict[str, Any]) -> None:
    """Ends on TERM with a word, unless it is told to be stubborn."""
    if params.get("stubborn"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    else:
        signal.signal(signal.SIGTERM, leave)
    for kind in params.get("children", ()):
        globals()[f"start_{kind}"]()
    say("ready")
    time.sleep(params.get("seconds", 600))
    say(json.dumps({"slept": True}))


def leave(_number: int, _frame: object) -> None:
    say("good-bye")
    sys.exit(7)


def do_sleep_then_tell(order: dict[str, Any], params: dict[str, Any]) -> None:
    """Something goes wrong with the first attempt; the second one says what it was given."""
    if order["attempt"] == 1:
        do_sleep(order, params)
    else:
        do_tell(order, params)


def do_leave(_order: dict[str, Any], params: dict[str, Any]) -> None:
    """Ends by itself, with processes left behind."""
    for kind in params["children"]:
        globals()[f"start_{kind}"]()
    say(json.dumps({"left": True}))


def start_stubborn() -> None:
    """A child in the same group that ignores TERM."""
    ours, theirs = os.pipe()
    if os.fork() == 0:
        linger(theirs)
    os.read(ours, 1)


def start_daemon() -> None:
    """As daemons are made: two forks and two sessions, away from group, session and parent; deaf as well."""
    ours, theirs = os.pipe()
    if (first := os.fork()) == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            linger(theirs)
        os._exit(0)
    os.waitpid(first, 0)
    os.read(ours, 1)


def linger(ready: int) -> None:
    """Whoever started it waits until it has told its number and hears no TERM any more."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    say(f"pid {os.getpid()}")
    os.write(ready, b"x")
    time.sleep(600)
    os._exit(0)


def do_bomb(_order: dict[str, Any], params: dict[str, Any]) -> None:
    """Forks for as long as it is let, but no longer than a moment: a test machine has other tenants."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            os.fork()
            if params.get("sessions"):
                os.setsid()


def do_flood(_order: dict[str, Any], params: dict[str, Any]) -> None:
    block = (b"x" * 1023 + (b"x" if params.get("endless") else b"\n")) * 1024
    for _ in range(params["megabytes"]):
        os.write(1, block)
    say("\n" + json.dumps({"printed": params["megabytes"]}))


def do_hog(_order: dict[str, Any], params: dict[str, Any]) -> None:
    for _ in range(params.get("processes", 1) - 1):
        if os.fork() == 0:
            break
    kept = [bytearray(params.get("megabytes_at_once", 0) * MEGABYTE)]
    for _ in range(params.get("megabytes", 0)):
        kept.append(bytearray(MEGABYTE))
        kept[-1][::4096] = b"x" * 256
    time.sleep(params.get("seconds", 600))


def do_share(_order: dict[str, Any], params: dict[str, Any]) -> None:
    """Many processes that share the same memory, which is there once."""
    kept = bytearray(params["megabytes"] * MEGABYTE)
    kept[::4096] = b"x" * len(kept[::4096])
    for _ in range(params["processes"]):
        if os.fork() == 0:
            time.sleep(params["seconds"])
            os._exit(0)
    for _ in range(params["processes"]):
        os.wait()
    say(json.dumps({"shared": len(kept)}))


def do_give_back_shared_memory(_order: dict[str, Any], params: dict[str, Any]) -> None:
    """Takes shared memory and gives its pages back piece by piece, so that no process ever has much. They are there
    all the same. Other mappings may precede it in the kernel's list: neighbours with the same rights would be one."""
    kept, piece = mmap.mmap(-1, params["megabytes"] * MEGABYTE), 10 * MEGABYTE
    rights = (mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE)
    others = [
        mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=rights[number % 2])
        for number in range(params.get("other_mappings", 0))
    ]
    for begin in range(0, len(kept), piece):
        kept[begin : begin + piece : mmap.PAGESIZE] = b"x" * (piece // mmap.PAGESIZE)
        kept.madvise(mmap.MADV_DONTNEED, begin, piece)
    time.sleep(params.get("seconds", 60))
    say(json.dumps({"still": kept[0], "others": len(others)}))


def do_spin(_order: dict[str, Any], params: dict[str, Any]) -> None:
    """Each for so long, however the machine divides its time among them."""
    for _ in range(params.get("processes", 1) - 1):
        if os.fork() == 0:
            break
    while time.process_time() < params.get("cpu_seconds_each", 600):
        pass
    time.sleep(600)


def do_write_file(_order: dict[str, Any], params: dict[str, Any]) -> None:
    with Path("large").open("wb") as file:
        file.writelines(bytes(MEGABYTE) for _ in range(params["megabytes"]))


def do_litter(_order: dict[str, Any], params: dict[str, Any]) -> None:
    """Many files of a megabyte, in its directory and its tmp by turns; then it goes, or stays and says so."""
    for number in range(params["megabytes"]):
        directory = Path("tmp" if number % 2 else "kept")
        directory.mkdir(exist_ok=True)
        file = directory / str(number)
        file.write_bytes(bytes(MEGABYTE))
    time.sleep(params.get("seconds", 0))


def do_scatter(_order: dict[str, Any], params: dict[str, Any]) -> None:
    for number in range(params["files"]):
        Path(str(number)).touch()
    time.sleep(600)


def do_ask_the_kernel(_order: dict[str, Any], _params: dict[str, Any]) -> None:
    """Who it is, and which of the kernel's settings it could write; none is written."""
    settings = [str(Path(folder, name)) for folder, _, names in os.walk("/proc/sys") for name in names]
    Path("/dev/stdout").open("w").close()
    told = {
        "user": [os.getuid(), os.getgid(), *os.getgroups()],
        "privileges": re.findall(r"^CapEff:\t(\w+)$", Path("/proc/self/status").read_text(), re.MULTILINE),
        "goes_first": int(Path("/proc/self/oom_score_adj").read_text()),
        "settings": len(settings),
        "writable": [each for each in settings if os.access(each, os.W_OK)],
    }
    say(json.dumps(told))


def do_make_namespaces(_order: dict[str, Any], _params: dict[str, Any]) -> None:
    """How the kernel answers each way to a user namespace. Each is tried in a process that ends at once."""
    libc = ctypes.CDLL(None, use_errno=True)
    new_user, child_signal = 0x10000000, int(signal.SIGCHLD)
    clone, clone3 = {"x86_64": (56, 435), "aarch64": (220, 435)}[os.uname().machine]
    told: dict[str, Any] = {
        "unshare": outcome(lambda: libc.unshare(new_user)),
        "clone": outcome(lambda: libc.syscall(clone, new_user | child_signal, 0, 0, 0, 0)),
        "clone3": outcome(lambda: libc.syscall(clone3, None, 0)),
    }
    worked: list[bool] = []
    thread = threading.Thread(target=lambda: worked.append(True))
    thread.start()
    thread.join()
    told["threads"] = worked == [True]
    say(json.dumps(told))


def do_hide_memory(_order: dict[str, Any], params: dict[str, Any]) -> None:
    """Takes memory that is in no process' size: behind a descriptor, and in a System V segment."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    size, told = params["megabytes"] * MEGABYTE, {}
    try:
        os.truncate(memory := os.memfd_create("hidden"), size)
        os.pwrite(memory, bytes(size), 0)
        told["memfd"] = "taken"
    except OSError as error:
        told["memfd"] = errno.errorcode[error.errno or 0]
    segment = libc.shmget(0, size, 0o1600)
    if segment == -1:
        told["segment"] = errno.errorcode[ctypes.get_errno()]
    else:
        address = libc.shmat(segment, None, 0)
        ctypes.memset(address, 1, size)
        libc.shmdt(ctypes.c_void_p(address))
        libc.shmctl(segment, 0, None)
        told["segment"] = "taken"
    say(json.dumps(told))


def outcome(attempt: Callable[[], int]) -> str:
    ours, theirs = os.pipe()
    if (child := os.fork()) == 0:
        failed = attempt() == -1
        name = errno.errorcode[ctypes.get_errno()] if failed else "done"
        os.write(theirs, name.encode())
        os._exit(0)
    os.waitpid(child, 0)
    return os.read(ours, 20).decode()


def do_mute(_order: dict[str, Any], params: dict[str, Any]) -> None:
    """Closes what it was given and lives on."""
    for descriptor in (0, 1, 2):
        os.close(descriptor)
    time.sleep(params["seconds"])
    os._exit(params.get("exit", 0))


def do_look(_order: dict[str, Any], params: dict[str, Any]) -> None:
    """What can be seen and reached from where it runs."""
    seen: dict[str, Any] = {
        "root": sorted(map(str, Path("/root").glob("*"))),
        "home": Path("/home").exists(),
        "secret": Path(params["secret"]).exists(),
        "readable": [path for path in ("/etc/passwd", "/etc/ssl/certs") if os.access(path, os.R_OK)],
        "pids": [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()],
        "writable": [
            path for path in ("/", "/usr", "/etc", "/dev", "/tmp", str(Path.cwd())) if os.access(path, os.W_OK)
        ],
    }
    if name := params.get("trace"):
        Path("/tmp", name).write_text("x")
    try:
        with socket.create_connection(("127.0.0.1", params["port"]), timeout=5):
            seen["network"] = True
    except OSError:
        seen["network"] = False
    say(json.dumps(seen))


def do_reach(_order: dict[str, Any], params: dict[str, Any]) -> None:
    """Which of these addresses answer."""
    reached = {}
    for host, port in params["addresses"]:
        try:
            with socket.create_connection((host, port), timeout=10) as connection:
                connection.settimeout(30)  # who listens there has to be given its turn first
                reached[host] = connection.recv(5).decode()
        except OSError as error:
            reached[host] = type(error).__name__
    say(json.dumps({"reached": reached, "resolver": Path("/etc/resolv.conf").read_text()}))


def say(line: str, end: str = "\n") -> None:
    print(line, end=end, flush=True)


if __name__ == "__main__":
    main()
