"""Worker and guardian die together: who starts in their place proves it and takes back what they had, or waits."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.acceptance.conftest import a_windlass_apart
from tests.acceptance.test_own_actors import lines, submit
from tests.support.installation import Client, Windlass
from tests.support.servers.databases import execute
from tests.support.servers.private_servers import Servers, new_directory
from tests.support.up import READY, WindlassUp
from tests.support.waiting import wait_until
from windlass.shared.process import procfs
from windlass.shared.process.procfs import ProcessIdentity, descendants

OUR_ACTORS = '''
import os
import subprocess
from pathlib import Path

from windlass import Context, actor


@actor(isolate=True)
def leave(notes: str, is_clean: bool, *, context: Context) -> int:
    """The first attempt starts what outlives it, if it can; with nothing in its environment where it is to be clean."""
    if context.attempt == 1:
        environment = {"PATH": os.environ["PATH"]} if is_clean else None
        sleeper = subprocess.Popen(["sleep", "300"], env=environment, start_new_session=True)
        Path(notes).write_text(f"{os.getppid()}\\n{sleeper.pid}\\n")
        context.sleep(300)
    return context.attempt
'''


@pytest.fixture(scope="module")
def module_windlass(
    servers: Servers, migrated_template: str, management: httpx.Client, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Windlass]:
    """With leases that no test waits for."""
    directory = tmp_path_factory.mktemp("succession")
    (directory / "our_actors.py").write_text(OUR_ACTORS)
    settings = {
        "WINDLASS_LEASE_SECONDS": "600",
        "WINDLASS_ACTORS": str(directory / "our_actors.py"),
        "WINDLASS_QUEUES": "probe.probe,own",
    }
    with a_windlass_apart(
        servers, migrated_template, management, directory, config="", actors=("probe",), **settings
    ) as windlass:
        windlass.start_all()
        yield windlass


@pytest.fixture
def windlass(module_windlass: Windlass) -> Iterator[Windlass]:
    """Whatever the test before has left is cancelled, and what still runs then is taken back."""
    if module_windlass.actors.poll() is not None:
        module_windlass.actors = module_windlass.start("actors")
    wait_until("a worker", module_windlass.workers)
    yield module_windlass
    for task in module_windlass.client.tasks(status=["queued", "running", "retrying"]):
        module_windlass.client.cancel(task["task_id"])


def running_probe(client: Client) -> str:
    task_id: str = client.submit(payload={"seconds": 600})["task_id"]
    client.wait_until(task_id, "running")
    return task_id


def kill_worker_and_guardian(windlass: Windlass) -> str:
    """Neither sees the other die: both are frozen first."""
    (worker,) = windlass.workers()
    pids = (windlass.actors.pid, worker["pid"])
    for signum in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            os.kill(pid, signum)
    windlass.actors.wait()
    return str(worker["worker_id"])


def stall_of(client: Client, task_id: str) -> dict[str, Any]:
    return next(each for each in client.events(task_id) if each["type"] == "stall")


def assert_proven_and_running_again(windlass: Windlass, task_id: str, lease_end: str, reason: str) -> None:
    client = windlass.client
    client.wait_until_attempt(task_id, 2)
    stall = stall_of(client, task_id)
    assert (stall["data"]["proof"]["by"], stall["data"]["proof"]["signals"]) == ("successor", [])
    assert reason in stall["data"]["proof"]["reason"]
    again = [each for each in client.events(task_id) if each["type"] == "claim"][-1]
    assert datetime.fromisoformat(again["at"]) < datetime.fromisoformat(lease_end), "by Postgres' own clock"
    assert client.story(task_id).count("stall") == 1


def refused(windlass: Windlass, worker_id: str, why: str) -> None:
    said = f"worker {worker_id} is not proven dead, and keeps its leases: "
    wait_until(f"it is said: {why}", lambda: any(said in line and why in line for line in windlass.log().splitlines()))


def test_a_successor_takes_back_at_once_what_worker_and_guardian_had(windlass: Windlass) -> None:
    client = windlass.client
    ids = [running_probe(client) for _ in range(3)]
    lease_ends = [client.get(task_id)["lease_expires_at"] for task_id in ids]
    dead = kill_worker_and_guardian(windlass)
    windlass.actors = windlass.start("actors")
    for task_id, lease_end in zip(ids, lease_ends, strict=True):
        assert_proven_and_running_again(windlass, task_id, lease_end, "nothing that they had started is left")
    assert dead in [worker["worker_id"] for worker in client.workers("lost")]
    wait_until("it is said", lambda: f"worker {dead} is proven dead" in windlass.log())
    assert windlass.log().count(f"worker {dead} is proven dead") == 1


@pytest.mark.parametrize("is_clean", [False, True], ids=["as it was started", "without a mark"])
def test_there_is_no_proof_as_long_as_anything_that_they_had_started_lives(
    windlass: Windlass, tmp_path: Path, is_clean: bool
) -> None:
    """Also their keeper is killed, which would have ended it: what is left belongs to nobody."""
    client, notes = windlass.client, tmp_path / "notes"
    task_id = submit(windlass, "leave", {"notes": str(notes), "is_clean": is_clean})
    wait_until("it is at work", lambda: len(lines(notes)) == 2)
    lease_end = client.get(task_id)["lease_expires_at"]
    keeper, left = (ProcessIdentity.of(int(line)) for line in lines(notes))
    assert keeper is not None
    assert left is not None
    (worker,) = windlass.workers()
    for pid in (windlass.actors.pid, worker["pid"]):
        os.kill(pid, signal.SIGSTOP)
    keeper.send(signal.SIGKILL)
    wait_until("the keeper is gone", lambda: not keeper.is_running())
    dead = kill_worker_and_guardian(windlass)
    assert left.is_running()
    windlass.actors = windlass.start("actors")
    refused(windlass, dead, f"process {left.pid} lives")
    assert (client.get(task_id)["status"], client.story(task_id)[-1]) == ("running", "claim")
    left.send(signal.SIGKILL)
    assert_proven_and_running_again(windlass, task_id, lease_end, "nothing that they had started is left")
    assert client.finished(task_id)["result"] == 2


def test_a_keeper_that_outlives_them_ends_what_it_keeps_and_then_they_are_proven_dead(
    windlass: Windlass, tmp_path: Path
) -> None:
    client, notes = windlass.client, tmp_path / "notes"
    task_id = submit(windlass, "leave", {"notes": str(notes), "is_clean": True})
    wait_until("it is at work", lambda: len(lines(notes)) == 2)
    lease_end = client.get(task_id)["lease_expires_at"]
    left = ProcessIdentity.of(int(lines(notes)[1]))
    kill_worker_and_guardian(windlass)
    windlass.actors = windlass.start("actors")
    assert_proven_and_running_again(windlass, task_id, lease_end, "nothing that they had started is left")
    assert left is not None
    assert not left.is_running()


def test_a_worker_of_another_machine_keeps_its_lease_though_the_name_is_the_same(windlass: Windlass) -> None:
    task_id = running_probe(windlass.client)
    dead = kill_worker_and_guardian(windlass)
    database = windlass.environment["WINDLASS_DATABASE_URL"]
    there = 'whereabouts || \'{"boot_id": "of another machine"}\''
    execute(database, f"UPDATE workers SET whereabouts = {there} WHERE worker_id = '{dead}'")
    windlass.actors = windlass.start("actors")
    refused(windlass, dead, "it was on another machine, or this one has been started since")
    assert windlass.client.story(task_id) == ["submit", "claim"]
    execute(database, f"UPDATE workers SET state = 'lost' WHERE worker_id = '{dead}'")


def test_a_frozen_worker_whose_guardian_lives_is_left_to_it(windlass: Windlass) -> None:
    client = windlass.client
    task_id = running_probe(client)
    (worker,) = windlass.workers()
    os.kill(worker["pid"], signal.SIGSTOP)
    before = len(windlass.log())
    beside = windlass.start("actors")
    second = wait_until("a second", lambda: [each for each in client.workers() if each["pid"] != worker["pid"]])[0]
    probe = client.submit(payload={})["task_id"]
    assert client.finished(probe)["status"] == "completed"
    assert client.get(probe)["worker_id"] == second["worker_id"]
    assert "proven dead" not in windlass.log()[before:]
    assert client.story(task_id)[-1] == "claim"
    os.kill(worker["pid"], signal.SIGCONT)
    beside.send_signal(signal.SIGTERM)
    beside.wait(60)


POD = "kubelet/pods/0a1b2c3d-0000-4000-8000-000000000001/containers/actors/1f2e3d4c"
AS_A_RUNTIME = """
set -eu
echo $$ >"$1/cgroup.procs"
exec unshare --pid --fork --kill-child --mount --cgroup sh -c '
set -eu
mount -t proc proc /proc
mount --bind "$1" "$2"
mount -t cgroup2 none /sys/fs/cgroup
exec "$3" -m windlass.services.actors
' sh "$2" "$3" "$4"
"""


class Container:
    """What a kubelet and its runtime make: a process namespace, a control group, and a file of the kubelet's."""

    def __init__(self, windlass: Windlass, cgroup: Path) -> None:
        last_words, inside = windlass.directory / POD, windlass.directory / "termination-log"
        last_words.parent.mkdir(parents=True, exist_ok=True)
        for file in (last_words, inside):
            file.touch()
        cgroup.mkdir(exist_ok=True)
        with (windlass.directory / "log").open("ab") as log:
            self.runtime = subprocess.Popen(
                ["sh", "-c", AS_A_RUNTIME, "sh", cgroup, last_words, inside, sys.executable],
                env=windlass.environment,
                stderr=log,
            )
        windlass.processes.append(self.runtime)

    def first(self) -> ProcessIdentity:
        """Its guardian, number 1 inside."""
        return wait_until("its first process", lambda: descendants(self.runtime.pid))[0]

    def kill(self) -> None:
        self.first().send(signal.SIGKILL)
        self.runtime.wait()


def remove_when_empty(cgroup: Path) -> None:
    wait_until("nobody is in it", lambda: not (cgroup / "cgroup.procs").read_text())
    cgroup.rmdir()


@pytest.fixture
def control_groups(tmp_path: Path) -> Iterator[Path]:
    """Where some can be made; none is left."""
    for place in (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified")):
        if os.geteuid() == 0 and (place / "cgroup.procs").exists():
            ours = place / f"windlass-test-{os.getpid()}"
            try:
                ours.mkdir()
            except OSError:
                continue
            yield ours
            for each in (*ours.glob("*/"), ours):
                remove_when_empty(each)
            return
    pytest.skip(
        "containers are made of namespaces and control groups, and only root on a machine with cgroup2 has them"
    )


def test_a_container_that_was_started_anew_proves_the_death_of_all_that_was_in_it(
    windlass: Windlass, control_groups: Path
) -> None:
    """As in a pod: nothing but the name and the kubelet's file stays, and nobody inside can see who is outside."""
    client = windlass.client
    windlass.actors.send_signal(signal.SIGUSR1)
    windlass.actors.wait(60)
    container = Container(windlass, control_groups / "first")
    first = wait_until("a worker", client.workers)[0]
    task_id = running_probe(client)
    lease_end = client.get(task_id)["lease_expires_at"]
    # One more process namespace in the same run of the container: the first one lives.
    inside = Container(windlass, control_groups / "first")
    refused(windlass, first["worker_id"], "its container may still run")
    assert client.story(task_id) == ["submit", "claim"]
    inside.kill()
    # Open, the namespace keeps its number, or the next one would have the same.
    with open(f"/proc/{container.first().pid}/ns/pid", "rb"):  # noqa: PTH123
        container.kill()
        anew = Container(windlass, control_groups / "second")
        assert_proven_and_running_again(windlass, task_id, lease_end, "its container was started anew")
    anew.kill()


def test_a_restart_of_postgres_hides_no_death() -> None:
    """The new server is younger than the worker, runs below the same supervisor, and overwrites its environment."""
    directory = new_directory()
    up = WindlassUp(directory / "data").with_settings(WINDLASS_LEASE_SECONDS="600")
    try:
        up.start()
        ready = READY.search(up.output)
        assert ready
        client = Client(ready[1], ready[2])
        os.kill(stopped := up.pid_of("postgres"), signal.SIGINT)
        wait_until("Postgres is back", lambda: up.pid_of("postgres") != stopped, seconds=60)
        client.wait_until_healthy()
        task_id = running_probe(client)
        (worker,) = [each for each in client.workers() if "probe.probe" in each["queues"]]
        guardian = parent_of(worker["pid"])
        for signum in (signal.SIGSTOP, signal.SIGKILL):
            for pid in (guardian, worker["pid"]):
                os.kill(pid, signum)
        client.wait_until_attempt(task_id, 2)
        assert stall_of(client, task_id)["data"]["proof"]["by"] == "successor"
        client.close()
    finally:
        up.make_sure_that_it_has_stopped()
        print(up.log)
        shutil.rmtree(directory)


def parent_of(pid: int) -> int:
    stat = procfs.stat_of(pid)
    assert stat
    return stat.parent
