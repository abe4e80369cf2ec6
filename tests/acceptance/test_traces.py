"""One task through every process, as its trace and its log lines tell it: a client's trace goes on behind the API."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import a_windlass
from tests.support.installation import Windlass
from tests.support.trace_receiver import ReceivedSpan, TraceReceiver, trace_receiver
from tests.support.waiting import wait_until

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
CLIENTS_SPAN = "b7ad6b7169203331"
SECRET = "a-provider-key-that-nobody-may-read"
PROMPT = "The keeper of the lighthouse wrote it in the log."
CONFIG = """
[providers.chatty]
actor = "summarize"
adapter = "openrouter"
model = "vendor/small"
api_key_env = "KEY_OF_chatty"
base_url = "BASE_URL"
[network]
allow_private = ["127.0.0.1"]
"""
ANSWER = {
    "id": "gen-1",
    "model": "vendor/small",
    "choices": [{"message": {"content": "He wrote."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 2},
}


class Chat(BaseHTTPRequestHandler):
    """Hangs up on the first call, and answers the second."""

    def do_POST(self) -> None:
        assert isinstance(self.server, Provider)
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.traceparents.append(self.headers.get("traceparent"))
        if len(self.server.traceparents) == 1:
            return
        body = json.dumps(ANSWER).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """What came is kept."""


class Provider(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Chat)
        self.traceparents: list[str | None] = []


@contextmanager
def a_provider() -> Iterator[Provider]:
    with Provider() as provider:
        thread = threading.Thread(target=provider.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield provider
        finally:
            provider.shutdown()
            thread.join()


@pytest.fixture
def provider() -> Iterator[Provider]:
    with a_provider() as provider:
        yield provider


@pytest.fixture
def receiver() -> Iterator[TraceReceiver]:
    with trace_receiver() as receiver:
        yield receiver


@pytest.fixture
def windlass(
    provider: Provider, receiver: TraceReceiver, database_url: str, amqp_url: str, tmp_path: Path
) -> Iterator[Windlass]:
    """As in a container, and with somebody who collects its traces."""
    config = CONFIG.replace("BASE_URL", f"http://127.0.0.1:{provider.server_port}")
    settings = {"WINDLASS_OTLP_ENDPOINT": receiver.url, "WINDLASS_LOG_FORMAT": "json", "KEY_OF_chatty": SECRET}
    with a_windlass(database_url, amqp_url, tmp_path, config=config, actors=("summarize",), **settings) as windlass:
        windlass.start_all()
        yield windlass


def test_one_trace_leads_from_the_client_through_a_retry_to_the_provider(
    windlass: Windlass, provider: Provider, receiver: TraceReceiver
) -> None:
    response = windlass.client.http.post(
        "/api/v1/tasks/summarize",
        json={"content": PROMPT, "provider": "chatty"},
        headers={"traceparent": f"00-{TRACE_ID}-{CLIENTS_SPAN}-01"},
    )
    assert "traceparent" not in response.raise_for_status().json()
    task_id = response.json()["task_id"]
    assert windlass.client.finished(task_id)["attempt"] == 2
    wait_until("all spans are there", lambda: is_whole(receiver))
    spans = receiver.of_trace(TRACE_ID)
    request = only(spans, "POST /api/v1/tasks/{task_id}")  # an actor's name stands where others have an id
    assert (request.kind, request.parent_id, request.service) == ("server", CLIENTS_SPAN, "windlass-api")
    assert request.attributes["http.response.status_code"] == 201
    submit = only(spans, "submit")
    assert (submit.kind, submit.parent_id) == ("producer", request.span_id)
    first, second = sorted(
        (span for span in spans if span.name == "process summarize.chatty"),
        key=lambda span: span.attributes["windlass.attempt"],
    )
    assert {span.parent_id for span in (first, second)} == {submit.span_id}
    assert (first.kind, first.links, first.failed) == ("consumer", (), True)
    assert first.attributes["error.type"] == "NetworkTimeout"
    assert first.attributes["windlass.outcome"] == "retrying"
    assert (second.links, second.failed) == (((TRACE_ID, first.span_id),), False)
    assert {span.attributes["windlass.task_id"] for span in (submit, first, second)} == {task_id}
    calls = [span for span in spans if span.kind == "client"]
    assert [(call.parent_id, call.failed) for call in calls] == [(first.span_id, True), (second.span_id, False)]
    assert provider.traceparents == [f"00-{TRACE_ID}-{call.span_id}-01" for call in calls]
    assert not [word for word in (SECRET, "lighthouse", "He wrote") if word.encode() in receiver.everything]

    whole = [line for line in windlass.log().splitlines(keepends=True) if line.endswith("\n")]
    lines = [json.loads(line) for line in whole]
    of_task = [line for line in lines if line["service"] == "actors" and task_id in json.dumps(line)]
    worker = windlass.client.get(task_id)["worker_id"]
    assert of_task
    for line in of_task:
        found = (line["task_id"], line["attempt"], line["worker"], line["trace_id"], line["span_id"])
        span = {1: first, 2: second}[line["attempt"]]
        assert found == (task_id, line["attempt"], worker, TRACE_ID, span.span_id), line

    refused = windlass.client.http.get("/api/v1/workers", headers={"Authorization": "Bearer wl_nobody_at_all"})
    assert refused.status_code == 401
    windlass.api.terminate()
    assert windlass.api.wait(timeout=60) == 0
    answers = {span.name: span.attributes["http.response.status_code"] for span in receiver.spans if is_answer(span)}
    assert answers["GET /api/v1/workers"] == 401, "what was not sent yet is sent before the process ends"
    assert not [name for name in answers if "/health" in name]


def is_answer(span: ReceivedSpan) -> bool:
    return span.kind == "server"


def is_whole(receiver: TraceReceiver) -> bool:
    """Each process sends its own when it pleases."""
    kinds = Counter(span.kind for span in receiver.of_trace(TRACE_ID))
    return kinds == {"server": 1, "producer": 1, "consumer": 2, "client": 2}


def only(spans: list[ReceivedSpan], name: str) -> ReceivedSpan:
    (found,) = [span for span in spans if span.name == name]
    return found
