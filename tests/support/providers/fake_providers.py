"""The fake provider server as a process of a test's own, which the test can script, ask, kill and start again."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.support.installation import Process, start
from tests.support.waiting import wait_until
from windlass.services.laptop.ports import free_port


class FakeProviders:
    """`url` stays the same over restarts; `key` is any that is accepted."""

    key = "a-key"

    def __init__(self, directory: Path, **settings: str) -> None:
        self.url = f"http://127.0.0.1:{free_port()}"
        self.http = httpx.Client(base_url=self.url, timeout=60, trust_env=False)
        self._log = directory / "fake_providers.log"
        self._environment = {
            **os.environ,
            "WINDLASS_DATA_DIR": str(directory),
            "WINDLASS_FAKE_PROVIDERS_URL": self.url,
            "WINDLASS_LOG_FORMAT": "text",
            **settings,
        }
        self._process: Process | None = None

    def start(self) -> None:
        self.launch()
        self.wait_until_answering()

    def wait_until_answering(self) -> None:
        wait_until("the fake providers", self._answers, seconds=90)

    def launch(self) -> Process:
        """Starts it and does not wait."""
        with self._log.open("ab") as log:
            self._process = start("windlass.services.fake_providers", self._environment, log.fileno())
        return self._process

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def base_url(self, provider: str) -> str:
        return f"{self.url}/{provider}"

    def client(self, provider: str, key: str | None = key) -> httpx.Client:
        """Speaks to one provider as an adapter would; without a key if there is none."""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return httpx.Client(base_url=self.base_url(provider), headers=headers, timeout=60, trust_env=False)

    def books(self, provider: str) -> dict[str, Any]:
        """What the provider has seen: `orders`, `running`, `most_running`, `cancelled`, `calls`, `callbacks`, …"""
        books: dict[str, Any] = self.http.get("/__control/books").raise_for_status().json()[provider]
        return books

    def script(self, provider: str, *behaviour: str, match: str = "", times: int | None = 1) -> None:
        """Words of `services/fake_providers/behaviour.py` for the next requests of a provider, as `"poll:503"`."""
        body = {"provider": provider, "behaviour": behaviour, "match": match, "times": times}
        self.http.post("/__control/script", json=body).raise_for_status()

    def clear_scripts(self) -> None:
        self.http.delete("/__control/script").raise_for_status()

    def change(self, **settings: Any) -> None:
        """`job_seconds`, or `leonardo_webhook={"url": …, "key": …}`."""
        self.http.put("/__control/settings", json=settings).raise_for_status()

    def reset(self) -> None:
        self.http.post("/__control/reset").raise_for_status()

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def kill(self) -> None:
        """With -9: it can note nothing down."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        return self._end(signal.SIGTERM)

    def restart(self) -> None:
        """Ends it in order and starts it again; after a `kill`, `start` does the same."""
        self.stop()
        self.start()

    def close(self) -> None:
        if self._process is not None:
            self.kill()
        self.http.close()

    def _end(self, signum: signal.Signals) -> int:
        assert self._process is not None
        self._process.send_signal(signum)
        return self._process.wait(60)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log()
        try:
            return self.http.get("/__control/alive").status_code == 200
        except httpx.TransportError:
            return False


@contextmanager
def fake_providers(directory: Path, **settings: str) -> Iterator[FakeProviders]:
    """Runs until the block is left, however that is."""
    fake = FakeProviders(directory, **settings)
    try:
        fake.start()
        yield fake
    finally:
        fake.close()
        print(fake.log())  # pytest shows it when the test failed
