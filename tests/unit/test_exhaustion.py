"""Failures that are the process' own: it has no descriptors, room or memory left, whoever says so and how."""

import asyncio
import errno
import gc
import os
import resource
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from obstore.exceptions import BaseError
from obstore.store import LocalStore

from windlass.services.actors.worker.ending.exhaustion import lack_behind
from windlass.shared.errors import NetworkTimeout, SubprocessFailed
from windlass.shared.providers.http.addresses import Allowances
from windlass.shared.providers.http.exchange import ask
from windlass.shared.providers.http.network import open_client


@contextmanager
def no_descriptors_left() -> Iterator[None]:
    """For as long as the block lasts. What an earlier test has left open is closed now, and not in the middle of it."""
    gc.collect()
    gc.disable()
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    unused = os.open(os.devnull, os.O_RDONLY)
    os.close(unused)  # the lowest free one, and the first that is refused
    resource.setrlimit(resource.RLIMIT_NOFILE, (unused, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        gc.enable()


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.ENOMEM])
def test_what_the_system_refuses_a_process_is_its_own_lack(number: int) -> None:
    assert lack_behind(OSError(number, os.strerror(number)))


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(errno.ECONNREFUSED, "nobody listens"),
        FileNotFoundError(errno.ENOENT, "no such file"),
        NetworkTimeout("could not be reached"),
        SubprocessFailed("exit code 1: Too many open files"),
        ValueError("[Errno 24] Too many open files"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_other_failures_are_the_task_s(error: Exception) -> None:
    assert lack_behind(error) is None


def test_a_lack_is_found_behind_whatever_was_made_of_it() -> None:
    lack = OSError(errno.EMFILE, "Too many open files")
    from_it, while_handling, neither = NetworkTimeout("one"), NetworkTimeout("two"), NetworkTimeout("three")
    from_it.__cause__, while_handling.__context__ = ExceptionGroup("several", [ValueError(), lack]), lack
    while_handling.__suppress_context__ = True
    neither.__cause__, neither.__context__ = ValueError(), neither
    assert lack_behind(from_it)
    assert lack_behind(while_handling)
    assert lack_behind(neither) is None


def test_a_request_that_could_not_be_sent_without_descriptors_is_not_the_provider_s_fault() -> None:
    allowances = Allowances(origins=frozenset({("127.0.0.1", 9)}))

    async def request() -> BaseException:
        async with open_client(allowances, timeout_seconds=60) as http:
            with pytest.raises(NetworkTimeout):  # nobody listens there; what is imported for a request is there now
                await ask(http, "a provider", "GET", "http://127.0.0.1:9/")
            with no_descriptors_left(), pytest.raises(NetworkTimeout) as failure:
                await ask(http, "a provider", "GET", "http://127.0.0.1:9/")
        return failure.value

    assert "descriptors" in (lack_behind(asyncio.run(request())) or "")


def test_a_subprocess_that_could_not_be_started_without_descriptors_has_not_failed() -> None:
    with no_descriptors_left(), pytest.raises(OSError, match="open files") as failure:
        subprocess.run(["/bin/true"], check=True, capture_output=True)
    assert "descriptors" in (lack_behind(failure.value) or "")


def test_a_file_that_could_not_be_stored_without_descriptors_says_nothing_about_the_storage(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.put("first", b"it has its threads by now")
    with no_descriptors_left(), pytest.raises(BaseError) as failure:
        store.put("second", b"content")
    assert "descriptors" in (lack_behind(failure.value) or "")


def test_a_name_that_was_not_resolved_while_there_were_no_descriptors_may_exist() -> None:
    error = httpx.ConnectError("the name cannot be resolved")
    error.__cause__ = socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
    assert lack_behind(error) is None
    with no_descriptors_left():
        assert lack_behind(error)
