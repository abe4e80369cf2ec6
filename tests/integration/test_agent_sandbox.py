"""What an agent can see and reach from inside its sandbox, and what it could without."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from shared.settings import DEFAULT_AGENTS
from tests.agents_at_work import finished, settings_for, skip_without_a_sandbox


@pytest.fixture
def port() -> Iterator[int]:
    """Something on this machine that listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield int(server.getsockname()[1])


def looked(tmp_path: Path, port: int, *, trace: str | None = None, **agent: Any) -> dict[str, Any]:
    secret = tmp_path / "data" / "secret"
    secret.parent.mkdir()
    secret.write_text("key")
    attempt = finished(settings_for(tmp_path, **agent), do="look", port=port, secret=str(secret), trace=trace)
    assert attempt.result is not None, attempt.error
    result: dict[str, Any] = attempt.result
    return result


def test_inside_there_is_no_home_no_network_and_nobody_else(tmp_path: Path, port: int) -> None:
    skip_without_a_sandbox(tmp_path)
    trace = f"trace-{uuid4()}"
    seen = looked(tmp_path, port, trace=trace, sandbox="required")
    # The interpreter of the tests may itself stand below /root: then that, and nothing else of it, is there.
    assert set(seen["root"]) <= {"/root/.pyenv"}
    assert seen["home"] is seen["secret"] is seen["network"] is False
    assert max(seen["pids"]) < 10
    assert os.getpid() not in seen["pids"]
    home = next(path for path in seen["writable"] if path.startswith(str(tmp_path)))
    assert seen["writable"] == ["/tmp", home]
    assert not Path("/tmp/trace").exists(), "its /tmp is its own"


def test_the_network_is_there_when_the_operator_allows_it(tmp_path: Path, port: int) -> None:
    skip_without_a_sandbox(tmp_path)
    seen = looked(tmp_path, port, sandbox="required", network=True)
    assert seen["network"] is True
    assert seen["secret"] is False


def test_without_a_sandbox_it_sees_what_the_worker_sees(tmp_path: Path, port: int) -> None:
    seen = looked(tmp_path, port, sandbox="off")
    assert seen["network"] is seen["secret"] is True
    assert os.getpid() in seen["pids"]


def test_the_demo_agent_works_in_one(tmp_path: Path) -> None:
    skip_without_a_sandbox(tmp_path)
    settings = settings_for(tmp_path, command=DEFAULT_AGENTS["demo"]["command"], sandbox="required")
    attempt = finished(settings, seconds=0.1, steps=2)
    assert attempt.result == {"answer": "I have thought about it 2 times.", "words": 1, "steps": 2}
    assert attempt.output.startswith("I am attempt 1 at: Behave.\nStep 1 of 2: ")
