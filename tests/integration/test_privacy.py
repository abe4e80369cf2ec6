"""What runs beside Windlass as the same user, an agent without a sandbox above all, cannot look into its processes."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.installation import PROJECT, leash
from tests.support.waiting import wait_until
from windlass.shared.process.procfs import direct_children

# By each of these privileges root may look into everything; without them it has to ask as everybody does.
ORDINARILY = ["setpriv", "--bounding-set=-sys_ptrace,-perfmon,-sys_admin", "--"] if os.geteuid() == 0 else []
LOOK = "import sys; print(len(open(f'/proc/{sys.argv[1]}/environ', 'rb').read()))"
NOWHERE = {
    "WINDLASS_DATABASE_URL": "postgresql://windlass:a-secret-word@127.0.0.1:1/windlass",
    "WINDLASS_AMQP_URL": "amqp://windlass:a-secret-word@127.0.0.1:1/windlass",
    "WINDLASS_QUEUES": "agent.local",
}
KEEPING = """
import sys
from pathlib import Path
from tests.support.agents_at_work import finished, settings_for
finished(settings_for(Path(sys.argv[1])), do="sleep")
"""


@contextmanager
def running(*arguments: str, **settings: str) -> Iterator[int]:
    environment = {**os.environ, **NOWHERE, **settings}
    command = [*leash(), *ORDINARILY, sys.executable, *arguments]
    with subprocess.Popen(command, cwd=PROJECT, env=environment, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until("it has become what it is", lambda: arguments_of(process.pid)[1:2] == [arguments[0]])
            yield process.pid
        finally:
            process.terminate()


def arguments_of(pid: int) -> list[str]:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    return []


def can_be_looked_into(pid: int) -> bool:
    command = [*ORDINARILY, sys.executable, "-I", "-S", "-c", LOOK, str(pid)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 or "PermissionError" in done.stderr, done.stderr
    return done.returncode == 0


def child_of(pid: int, module: str) -> int:
    """The child of that process that runs this."""

    def found() -> int | None:
        children = [each.pid for each in direct_children(pid)]
        return next((each for each in children if module in " ".join(arguments_of(each))), None)

    return wait_until(f"a child that runs {module}", found)


def test_the_look_itself_works() -> None:
    with running("-c", "import time; time.sleep(600)") as pid:
        assert can_be_looked_into(pid), "then the tests below prove nothing"


def test_guardian_and_worker_are_private(open_path: Path) -> None:
    with running("-m", "windlass.services.actors", WINDLASS_DATA_DIR=str(open_path)) as guardian:
        wait_until("the guardian is private", lambda: not can_be_looked_into(guardian))
        worker = child_of(guardian, "windlass.services.actors.main")
        wait_until("the worker is private", lambda: not can_be_looked_into(worker))


def test_a_keeper_is_private(open_path: Path) -> None:
    with running("-c", KEEPING, str(open_path)) as worker:
        keeper = child_of(worker, "windlass.services.actors.subprocess.keeper")
        wait_until("the keeper is private", lambda: not can_be_looked_into(keeper))
