"""The OpenTelemetry SDK behind the hooks, and its exporter, which costs spans when it fails and nothing else."""

import logging
import threading
from collections.abc import Sequence
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Self

from opentelemetry import context, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from windlass.shared import tracing
from windlass.shared.settings import Settings

log = logging.getLogger("tracing")

EXPORT_SECONDS = 5
WAITING_SPANS = 4096
"""So many wait to be sent; of more, the oldest are dropped."""

KINDS = {
    "server": trace.SpanKind.SERVER,
    "client": trace.SpanKind.CLIENT,
    "producer": trace.SpanKind.PRODUCER,
    "consumer": trace.SpanKind.CONSUMER,
}

_propagator = TraceContextTextMapPropagator()
_chosen_id: ContextVar[int | None] = ContextVar("chosen span id", default=None)


class Ids(RandomIdGenerator):
    """Random, but for the spans whose number others must be able to find out."""

    def generate_span_id(self) -> int:
        return _chosen_id.get() or super().generate_span_id()


class RecordedSpan(tracing.Span):
    def __init__(self, span: trace.Span) -> None:
        self._span = span
        self._left: Token[context.Context] | None = None

    def __enter__(self) -> Self:
        self._left = context.attach(trace.set_span_in_context(self._span))
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.leave()
        if error is not None:
            self.fail(type(error).__name__)
        self.end()

    def leave(self) -> None:
        if self._left is not None:
            context.detach(self._left)
            self._left = None

    def note(self, **attributes: str | int) -> None:
        for name, value in attributes.items():
            self._span.set_attribute(name.replace("__", "."), value)

    def fail(self, error_type: str) -> None:
        self._span.set_attribute("error.type", error_type)
        self._span.set_status(trace.StatusCode.ERROR)

    def end(self) -> None:
        if self._span.is_recording():
            self._span.end()

    def traceparent(self) -> str | None:
        return _written(trace.set_span_in_context(self._span))


class OpenTelemetryTracer:
    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("windlass")

    def begin(
        self,
        name: str,
        kind: tracing.Kind,
        attributes: tracing.Attributes,
        *,
        parent: str | None,
        span_id: int | None,
        links: Sequence[int],
    ) -> RecordedSpan:
        above = None if parent is None else _read(parent)
        chosen = _chosen_id.set(span_id)
        try:
            span = self._tracer.start_span(
                name,
                context=above,
                kind=KINDS[kind],
                attributes=dict(attributes),
                links=[_link(trace.get_current_span(above).get_span_context(), each) for each in links],
            )
        finally:
            _chosen_id.reset(chosen)
        return RecordedSpan(span)

    def current(self) -> str | None:
        return _written(None)

    def stop(self, seconds: float) -> None:
        """Beside us: a collector that takes the connection and says nothing would keep the process for long."""
        stopping = threading.Thread(target=self._provider.shutdown, name="tracing-stop", daemon=True)
        stopping.start()
        stopping.join(seconds)


class TellingExporter(SpanExporter):
    """Says once that spans cannot be sent, and once that they can again. Used by the SDK's own thread."""

    def __init__(self, inner: SpanExporter) -> None:
        self._inner = inner
        self._is_failing = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._inner.export(spans)
        is_failing = result is not SpanExportResult.SUCCESS
        if is_failing != self._is_failing:
            self._is_failing = is_failing
            if is_failing:
                log.warning("spans cannot be sent to WINDLASS_OTLP_ENDPOINT: they are dropped until it answers")
            else:
                log.info("spans are sent again")
        return result

    def shutdown(self) -> None:
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._inner.force_flush(timeout_millis)


def open_tracer(settings: Settings, service: str) -> OpenTelemetryTracer:
    """What the SDK itself reads from `OTEL_…` (resource attributes, the exporter's headers and certificates) holds."""
    assert settings.otlp_endpoint is not None
    # The exporter complains of every batch; what there is to say is said above.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    endpoint = f"{settings.otlp_endpoint.rstrip('/')}/v1/traces"
    provider = TracerProvider(
        resource=Resource.create({"service.name": f"windlass-{service}", "service.namespace": "windlass"}),
        sampler=ParentBased(TraceIdRatioBased(settings.trace_ratio)),
        id_generator=Ids(),
        shutdown_on_exit=False,
    )
    exporter = TellingExporter(OTLPSpanExporter(endpoint, timeout=EXPORT_SECONDS))
    provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=WAITING_SPANS, schedule_delay_millis=1000))
    return OpenTelemetryTracer(provider)


def _read(traceparent: str) -> context.Context:
    return _propagator.extract({"traceparent": traceparent}, context.Context())


def _link(above: trace.SpanContext, span_id: int) -> trace.Link:
    return trace.Link(trace.SpanContext(above.trace_id, span_id, is_remote=True, trace_flags=above.trace_flags))


def _written(where: context.Context | None) -> str | None:
    carrier: dict[str, str] = {}
    _propagator.inject(carrier, where)
    return carrier.get("traceparent")
