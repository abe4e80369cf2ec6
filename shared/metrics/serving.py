"""`/metrics` on a port of its own, answered by a thread: one process is one endpoint, and nothing is shared by two."""

import logging
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version

from prometheus_client import CollectorRegistry, ProcessCollector, disable_created_metrics, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from windlass.shared.metrics import catalogue, connections, counting
from windlass.shared.metrics.declaring import registry_of
from windlass.shared.metrics.services import BUILD
from windlass.shared.settings import Settings

log = logging.getLogger("metrics")

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
AGAIN_SECONDS = 0.5
PATIENCE_SECONDS = 5.0


def own_registry(settings: Settings, service: str) -> CollectorRegistry:
    """What this process says of itself; what Postgres knows about everything is read when somebody asks."""
    disable_created_metrics()  # type: ignore[no-untyped-call] # as many series again, which nobody reads
    registry = registry_of(service, without=[declared.instrument for declared in catalogue.of_everything()])
    ProcessCollector(namespace="windlass", registry=registry)
    BUILD.labels(service, version("windlass")).set(1)
    connections.tell()
    counting.begin(settings.named_queues())
    return registry


def serve(settings: Settings, service: str) -> "MetricsServer | None":
    """For a process that answers nothing else; without a port in its settings it stays so."""
    if settings.metrics_port is None:
        return None
    registry = own_registry(settings, service)
    server = MetricsServer(settings, lambda: generate_latest(registry))
    server.start()
    return server


class MetricsServer:
    """Its thread ends with the process, or when it is told to.

    A port that is taken is tried again and again: the process that had it may just be ending, and work that goes on
    unseen is better than work that does not.
    """

    def __init__(self, settings: Settings, render: Callable[[], bytes]) -> None:
        self._address = (settings.metrics_host or settings.host, settings.metrics_port or 0)
        self._render = render
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="metrics", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        with suppress(OSError):
            socket.create_connection(self._address, timeout=1).close()  # it looks up from its waiting
        self._thread.join(PATIENCE_SECONDS)

    def _serve(self) -> None:
        said = False
        while not self._stopping.is_set():
            try:
                server = Server(self._address, handler_of(self._render))
            except OSError as error:
                if not said:
                    log.warning("no metrics yet: port %d cannot be listened on (%s)", self._address[1], error.strerror)
                said = True
                self._stopping.wait(AGAIN_SECONDS)
                continue
            with server:
                while not self._stopping.is_set():
                    server.handle_request()


class Server(ThreadingHTTPServer):
    """Says nothing about clients that leave early."""

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Without looking up the host's name, which nobody needs here and which can take seconds."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002
        log.debug("a question was not answered", exc_info=True)


def handler_of(render: Callable[[], bytes]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = PATIENCE_SECONDS

        def do_GET(self) -> None:
            if self.path.partition("?")[0] != "/metrics":
                self.send_error(404)
                return
            body = render()
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: object) -> None:
            """Prometheus asks four times a minute."""

    return Handler
