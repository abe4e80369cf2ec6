"""What an agent can see and reach from inside its sandbox, and what it could without."""

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.support.agents_at_work import COMMAND, finished, settings_for, skip_without_a_sandbox
from windlass.services.actors.agent import sandbox as sandboxes
from windlass.services.actors.agent.sandbox import Network, Sandbox
from windlass.services.actors.subprocess import system_calls
from windlass.shared.errors import InvalidInput
from windlass.shared.process.accounts import account_for_agents, account_for_postgres
from windlass.shared.settings import DEFAULT_AGENTS

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user's agents run as himself")


@pytest.fixture
def port() -> Iterator[int]:
    """Something on this machine that listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield int(server.getsockname()[1])


def found(directory: Path) -> Sandbox:
    box = sandboxes.find(directory, None)
    assert box
    return box


def looked(open_path: Path, port: int, *, trace: str | None = None, **agent: Any) -> dict[str, Any]:
    secret = open_path / "data" / "secret"
    secret.parent.mkdir()
    secret.write_text("key")
    attempt = finished(settings_for(open_path, **agent), do="look", port=port, secret=str(secret), trace=trace)
    assert attempt.result is not None, attempt.error
    result: dict[str, Any] = attempt.result
    return result


def test_inside_there_is_no_home_no_network_and_nobody_else(open_path: Path, port: int) -> None:
    skip_without_a_sandbox(open_path)
    trace = f"trace-{uuid4()}"
    seen = looked(open_path, port, trace=trace, sandbox="required")
    # The interpreter of the tests may itself stand below /root: then that, and nothing else of it, is there.
    assert set(seen["root"]) <= {"/root/.pyenv"}
    assert seen["home"] is seen["secret"] is seen["network"] is False
    assert seen["readable"] == [path for path in ("/etc/passwd", "/etc/ssl/certs") if Path(path).exists()]
    assert max(seen["pids"]) < 10
    assert os.getpid() not in seen["pids"]
    home = next(path for path in seen["writable"] if path.startswith(str(open_path)))
    assert seen["writable"] == ["/tmp", home]
    assert not Path("/tmp/trace").exists(), "its /tmp is its own"


def test_the_network_is_there_when_the_operator_allows_it(open_path: Path, port: int) -> None:
    skip_without_a_sandbox(open_path)
    seen = looked(open_path, port, sandbox="required", network="host")
    assert seen["network"] is True
    assert seen["secret"] is False


def test_without_a_sandbox_it_sees_what_the_worker_sees(open_path: Path, port: int) -> None:
    seen = looked(open_path, port, sandbox="off")
    assert seen["network"] is seen["secret"] is True
    assert os.getpid() in seen["pids"]


def test_no_setting_of_the_kernel_can_be_written_from_inside(open_path: Path) -> None:
    skip_without_a_sandbox(open_path)
    told = finished(settings_for(open_path, sandbox="required"), do="ask_the_kernel").result
    assert told["settings"] > 100, "then this test proves nothing"
    assert told["goes_first"] == 500, "although its keeper, of whom it is a copy at first, may write nothing there"
    assert told["writable"] == []


def test_root_itself_could_not_write_them_either(open_path: Path) -> None:
    """Under whatever account: /proc is read-only. Run as the tests' own user."""
    skip_without_a_sandbox(open_path)
    (open_path / "tmp").mkdir()
    box = Sandbox(found(open_path).program, open_path / "data")
    with system_calls.readable() as filter_fd:
        done = subprocess.run(
            box.wrap(COMMAND, open_path, network=Network.NONE, filter_fd=filter_fd),
            pass_fds=(filter_fd,),
            input=json.dumps({"params": {"do": "ask_the_kernel"}}),
            capture_output=True,
            text=True,
            check=True,
            timeout=90,
        )
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["user"][0] == os.getuid()
    assert (told["settings"] > 100, told["writable"]) == (True, [])


def test_no_user_namespace_can_be_made_inside(open_path: Path) -> None:
    skip_without_a_sandbox(open_path)
    told = finished(settings_for(open_path, sandbox="required"), do="make_namespaces").result
    assert told == {"unshare": "EPERM", "clone": "EPERM", "clone3": "ENOSYS", "threads": True}
    outside = finished(settings_for(open_path, sandbox="off"), do="make_namespaces").result
    assert outside["threads"] is True


def test_an_ordinary_user_s_sandbox_makes_none_either(open_path: Path) -> None:
    """Where bubblewrap itself has to make one first. Run as the tests' own user."""
    skip_without_a_sandbox(open_path)
    (open_path / "tmp").mkdir()
    box = Sandbox(found(open_path).program, open_path / "data")
    with system_calls.readable() as filter_fd:
        done = subprocess.run(
            box.wrap(COMMAND, open_path, network=Network.NONE, filter_fd=filter_fd),
            pass_fds=(filter_fd,),
            input=json.dumps({"params": {"do": "make_namespaces"}}),
            capture_output=True,
            text=True,
            check=True,
            timeout=90,
        )
    assert json.loads(done.stdout.splitlines()[-1])["unshare"] == "EPERM"


@needs_root
def test_the_place_of_the_hidden_data_is_no_memory_without_a_limit(open_path: Path) -> None:
    """It is in memory, and an ordinary user's agent owns it."""
    skip_without_a_sandbox(open_path)
    data, place = open_path / "data", open_path / "data" / "work"
    (place / "tmp").mkdir(parents=True)
    program = open_path / "program"
    program.write_text(f"touch {place}/mine && echo mine; touch {data}/x && echo hidden; ls {data}")
    box = Sandbox(found(open_path).program, data)
    with system_calls.readable() as filter_fd:
        done = subprocess.run(
            box.wrap(("/bin/sh", str(program), str(open_path)), place, network=Network.NONE, filter_fd=filter_fd),
            pass_fds=(filter_fd,),
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
            cwd=open_path,
        )
    assert done.stdout.split() == ["mine", "work"], done.stderr


@pytest.mark.parametrize("sandbox", ["required", "off"])
def test_root_s_agents_have_an_account_of_their_own(open_path: Path, sandbox: str) -> None:
    if sandbox == "required":
        skip_without_a_sandbox(open_path)
    account = account_for_agents()
    postgres = account_for_postgres()
    assert account
    assert postgres
    told = finished(settings_for(open_path, sandbox=sandbox), do="ask_the_kernel").result
    assert told["user"] == [account.uid, account.gid]
    assert account.uid not in {0, postgres.uid}
    assert told["privileges"] == ["0" * 16]


@needs_root
def test_what_root_s_account_for_agents_may_not_read_is_named(open_path: Path) -> None:
    closed = open_path / "closed" / "agent"
    closed.parent.mkdir(mode=0o700)
    closed.write_text("#!/bin/sh")
    closed.chmod(0o755)
    error = finished(settings_for(open_path, command=(str(closed),)), do="tell").failed
    assert isinstance(error, InvalidInput)
    assert f"who may not read {closed}." in error.message


@needs_root
def test_in_a_sandbox_what_stands_below_a_closed_home_can_be_run(open_path: Path) -> None:
    skip_without_a_sandbox(open_path)
    program = open_path / "closed" / "tool" / "bin" / "agent"
    program.parent.mkdir(parents=True)
    (open_path / "closed").chmod(0o700)
    program.write_text('#!/bin/sh\necho "{\\"ran\\": true}" >/dev/stdout\n')
    program.chmod(0o755)
    attempt = finished(settings_for(open_path, command=(str(program),), sandbox="required"), do="tell")
    assert attempt.result == {"ran": True}, attempt.error


def test_the_demo_agent_works_in_one(open_path: Path) -> None:
    skip_without_a_sandbox(open_path)
    settings = settings_for(open_path, command=DEFAULT_AGENTS["demo"]["command"], sandbox="required")
    attempt = finished(settings, seconds=0.1, steps=2)
    assert attempt.result == {"answer": "I have thought about it 2 times.", "words": 1, "steps": 2}
    assert attempt.output.startswith("I am attempt 1 at: Behave.\nStep 1 of 2: ")
