"""A service that hangs is killed and started again, and one that answers slowly now and then is left alone."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import yaml

from windlass.services.laptop.api_health import ApiHealth
from windlass.services.laptop.ports import free_port
from windlass.services.laptop.supervision.children import Children
from windlass.services.laptop.supervision.service import Liveness, Service
from windlass.services.laptop.supervision.supervisor import Supervisor
from windlass.services.laptop.supervision.waiting import until

DEPLOYMENT = Path(__file__).parents[2] / "deploy/k8s/base/api.yaml"
NOWHERE = "postgresql://nobody@127.0.0.1:1/none"


@asynccontextmanager
async def a_kept_api(directory: Path, *, failures: int) -> AsyncIterator[tuple[Service, list[str], ApiHealth]]:
    """An api whose database is away: it lives all the same."""
    lines: list[str] = []
    port = free_port()
    environment = {
        **os.environ,
        "WINDLASS_DATA_DIR": str(directory),
        "WINDLASS_DATABASE_URL": NOWHERE,
        "WINDLASS_PORT": str(port),
        "WINDLASS_MEDIA_STORAGE": f"file://{directory}/media",
    }
    children, supervisor = Children(), Supervisor(lines.append)
    async with ApiHealth(f"http://127.0.0.1:{port}", "wl_none_none") as health:
        api = Service(
            "api",
            "windlass.services.api",
            children,
            lines.append,
            environment=environment,
            stop_seconds=10,
            answers=health.is_live,
            liveness=Liveness(health.is_live, period_seconds=0.2, timeout_seconds=0.5, failures=failures),
        )
        keeping: asyncio.Task[None] | None = None
        try:
            await supervisor.start(api)
            keeping = asyncio.create_task(supervisor.keep(on_restart=lambda _unit: None))
            yield api, lines, health
        finally:
            if keeping is not None:
                keeping.cancel()
            await supervisor.stop()
            await children.end_all()


def test_an_api_that_hangs_is_started_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_kept_api(tmp_path, failures=4) as (api, lines, health):
            before = api.pid
            api.send(signal.SIGSTOP)
            assert await until(lambda: any("runs again" in line for line in lines), 60), lines
            assert api.pid != before
            assert any("liveness" in line for line in lines), lines
            assert await health.is_live()

    asyncio.run(scenario())


def test_an_api_that_answers_again_in_time_is_left_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_kept_api(tmp_path, failures=1_000) as (api, lines, health):
            before = api.pid
            for _ in range(3):
                api.send(signal.SIGSTOP)
                assert not await health_within(health, 0.3)
                api.send(signal.SIGCONT)
                assert await health.is_live()
            assert api.pid == before
            assert not any("liveness" in line for line in lines), lines

    asyncio.run(scenario())


async def health_within(health: ApiHealth, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await health.is_live()
    except TimeoutError:
        return False


def test_the_probe_is_that_of_kubernetes() -> None:
    documents = yaml.safe_load_all(DEPLOYMENT.read_text())
    (container,) = (
        each
        for document in documents
        if document["kind"] == "Deployment"
        for each in document["spec"]["template"]["spec"]["containers"]
        if "livenessProbe" in each
    )
    probe, ours = container["livenessProbe"], Liveness(lambda: asyncio.sleep(0, result=True))
    assert probe["httpGet"]["path"] == "/health/live"
    assert (probe["periodSeconds"], probe["timeoutSeconds"], probe["failureThreshold"]) == (
        ours.period_seconds,
        ours.timeout_seconds,
        ours.failures,
    )
