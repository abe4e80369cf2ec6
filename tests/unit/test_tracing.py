"""Traces: off they are not even loaded, and a collector that is away or says nothing costs spans and nothing else."""

import contextlib
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from tests.support.installation import PROJECT
from tests.support.trace_receiver import trace_receiver
from windlass.services.laptop.ports import free_port
from windlass.shared import tracing
from windlass.shared.tracing import ids_of, span_id_of

TASK_ID = UUID("01890000-0000-7000-8000-000000000000")
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

MANY_SPANS = """
    import sys, time
    from uuid import UUID
    from windlass.shared.process import logs
    from windlass.shared import tracing
    from windlass.shared.settings import Settings

    logs.start(Settings(), "actors")
    tracing.start(Settings(), "actors")
    for _ in range(10_000):
        with tracing.attempting(UUID(int=1), 1, "probe.probe", "worker", sys.argv[1]):
            pass
    began = time.monotonic()
    tracing.stop()
    print(time.monotonic() - began)
    with tracing.attempting(UUID(int=1), 1, "probe.probe", "worker", sys.argv[1]) as span:
        assert span is tracing.NO_SPAN
"""


def run(program: str, *arguments: str, path: str = "", **settings: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", textwrap.dedent(program), *arguments]
    environment = {"PYTHONPATH": f"{path}:{PROJECT}", **settings}
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=PROJECT, env=environment, timeout=100
    )


def test_off_nothing_is_traced_and_nothing_of_opentelemetry_is_loaded() -> None:
    program = """
        import sys
        import windlass.services.actors.main, windlass.services.api.main, windlass.services.dispatcher.main
        from windlass.shared.process import logs
        from windlass.shared import tracing
        from windlass.shared.settings import Settings
        logs.start(Settings(), "api")
        tracing.start(Settings(), "api")
        assert not tracing.is_on()
        with tracing.submitting() as span:
            assert span is tracing.NO_SPAN and tracing.traceparent() is None and tracing.ids() is None
        tracing.stop()
        print(sorted(name for name in sys.modules if name.startswith("opentelemetry")))
    """
    done = run(program)
    assert (done.stdout, done.stderr) == ("[]\n", "")


SERVERS = {"WINDLASS_DATABASE_URL": "postgresql://127.0.0.1:9/x", "WINDLASS_AMQP_URL": "amqp://127.0.0.1:9"}


def test_asked_for_without_its_packages_every_process_refuses_and_names_the_extra(tmp_path: Path) -> None:
    package = tmp_path / "opentelemetry"
    package.mkdir()
    (package / "__init__.py").write_text("raise ModuleNotFoundError(name='opentelemetry')\n")
    for service in ("api", "dispatcher", "actors"):
        program = f"import runpy; runpy.run_module('services.{service}', run_name='__main__')"
        done = run(program, path=str(tmp_path), WINDLASS_OTLP_ENDPOINT="http://127.0.0.1:9", **SERVERS)
        assert done.returncode == 2
        assert "WINDLASS_OTLP_ENDPOINT" in done.stderr
        assert "pip install '.[server,tracing]' in a clone" in done.stderr


@contextlib.contextmanager
def a_black_hole() -> Iterator[str]:
    """Takes every connection, and never says a word."""
    with socket.create_server(("127.0.0.1", 0), backlog=1000) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@contextlib.contextmanager
def nobody() -> Iterator[str]:
    yield f"http://127.0.0.1:{free_port()}"


@pytest.mark.parametrize("collector", [a_black_hole, nobody])
def test_a_collector_that_does_not_answer_holds_up_neither_the_work_nor_its_end(
    collector: "contextlib.AbstractContextManager[str]",
) -> None:
    with collector() as url:  # type: ignore[operator]
        done = run(MANY_SPANS, PARENT, WINDLASS_OTLP_ENDPOINT=url)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 25, "the exporter alone would wait for 30 s"
    assert done.stderr.count("\n") <= 1, "it is told once at most"


def test_links_name_the_earlier_attempts_and_a_caller_who_is_not_sampled_leaves_no_span() -> None:
    program = """
        import sys
        from uuid import UUID
        from windlass.shared import tracing
        from windlass.shared.settings import Settings
        from windlass.shared.tracing import sdk
        sdk.EXPORT_SECONDS = tracing.STOP_SECONDS = 60  # no span is dropped because the machine is busy
        tracing.start(Settings(), "actors")
        with tracing.attempting(UUID(sys.argv[1]), 3, "probe.probe", "worker", sys.argv[2]):
            tracing.calling("POST", "https", "api.example", None).end()
        with tracing.attempting(UUID(sys.argv[1]), 4, "probe.probe", "worker", sys.argv[2][:-1] + "0") as unsampled:
            print(unsampled.traceparent())
        with tracing.answering("GET", "/api/v1/tasks", "no traceparent at all"):
            pass
        tracing.calling("POST", "https", "api.example", None).end()
        tracing.stop()
    """
    with trace_receiver() as receiver:
        done = run(program, str(TASK_ID), PARENT, WINDLASS_OTLP_ENDPOINT=receiver.url)
        assert done.stderr == ""
        call, attempt, request = receiver.spans
    trace_id, parent_id = PARENT.split("-")[1:3]
    assert (attempt.trace_id, attempt.parent_id) == (trace_id, parent_id)
    assert attempt.links == tuple((trace_id, f"{span_id_of(TASK_ID, each):016x}") for each in (1, 2))
    assert attempt.span_id == f"{span_id_of(TASK_ID, 3):016x}"
    assert (call.trace_id, call.parent_id) == (trace_id, attempt.span_id)
    assert call.attributes == {"http.request.method": "POST", "server.address": "api.example", "server.port": 443}
    assert request.trace_id != trace_id, "what nobody can read begins a trace of its own"
    assert request.parent_id == ""
    assert done.stdout.strip() == f"00-{trace_id}-{span_id_of(TASK_ID, 4):016x}-00"


@pytest.mark.parametrize("text", [None, "", "garbage", "00-xyz-1-01", PARENT + "-more", PARENT.upper()])
def test_what_is_no_traceparent_has_no_ids(text: str | None) -> None:
    assert ids_of(text) is None


def test_tracing_is_off_by_default() -> None:
    assert not tracing.is_on()
