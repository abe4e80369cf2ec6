"""The bundled server that plays providers, for as long as a command needs it: a process and a directory of its own."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Final

import httpx

PLAYED: Final = ("leonardo", "midjourney", "openai", "openrouter")
"""Adapters that it has an answer for."""

START_SECONDS: Final = 60.0
STOP_SECONDS: Final = 10.0


@contextmanager
def bundled_server() -> Iterator[str]:
    """Where it answers; its jobs take a moment."""
    url = f"http://127.0.0.1:{_free_port()}"
    with TemporaryDirectory(prefix="windlass-check-") as directory:
        told = {"WINDLASS_FAKE_PROVIDERS_URL": url, "WINDLASS_DATA_DIR": directory, "WINDLASS_FAKE_JOB_SECONDS": "0.2"}
        command = [sys.executable, "-m", "windlass.services.fake_providers"]
        with subprocess.Popen(command, env={**os.environ, **told}, stderr=subprocess.DEVNULL) as process:
            try:
                _wait_until_answering(url, process)
                yield url
            finally:
                process.terminate()
                try:
                    process.wait(STOP_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()


def _wait_until_answering(url: str, process: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            httpx.get(f"{url}/openrouter/models", timeout=5, trust_env=False)
        except httpx.HTTPError:
            time.sleep(0.05)
        else:
            return
    raise OSError(f"the bundled server did not start at {url}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
