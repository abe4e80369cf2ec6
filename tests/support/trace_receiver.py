"""A collector of traces: takes what OpenTelemetry's exporter sends over HTTP, and keeps the spans."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status


@dataclass(frozen=True)
class ReceivedSpan:
    service: str
    name: str
    kind: str
    trace_id: str
    span_id: str
    parent_id: str
    links: tuple[tuple[str, str], ...]
    attributes: dict[str, Any]
    failed: bool


class TraceReceiver(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Delivery)
        self.spans: list[ReceivedSpan] = []
        self.everything = b""
        self.writing = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def of_trace(self, trace_id: str) -> list[ReceivedSpan]:
        return [span for span in list(self.spans) if span.trace_id == trace_id]


class Delivery(BaseHTTPRequestHandler):
    server: TraceReceiver

    def do_POST(self) -> None:
        assert self.path == "/v1/traces"
        body = self.rfile.read(int(self.headers["Content-Length"]))
        spans = list(_spans(ExportTraceServiceRequest.FromString(body)))
        with self.server.writing:  # several processes may deliver at once
            self.server.everything += body
            self.server.spans += spans
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """The spans are the log."""


def _spans(request: ExportTraceServiceRequest) -> Iterator[ReceivedSpan]:
    for resource in request.resource_spans:
        service = _values(resource.resource.attributes)["service.name"]
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield ReceivedSpan(
                    service,
                    span.name,
                    Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_").lower(),
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    tuple((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
                    _values(span.attributes),
                    failed=span.status.code == Status.STATUS_CODE_ERROR,
                )


def _values(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


@contextmanager
def trace_receiver() -> Iterator[TraceReceiver]:
    with TraceReceiver() as receiver:
        thread = threading.Thread(target=receiver.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield receiver
        finally:
            receiver.shutdown()
            thread.join()
