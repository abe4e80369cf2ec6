"""Readable log lines on stderr, the same in every process."""

import logging
import sys

from shared.settings import Settings


def start(settings: Settings, service: str) -> logging.Logger:
    """Sets up logging for this process and returns the service's own logger."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s", "%H:%M:%S"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.log_level.upper())
    for chatty in ("alembic", "httpx", "httpcore", "periodiq", "dramatiq.worker", "uvicorn"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    # A lost connection is told once, by whoever needs it, without pages of tracebacks.
    logging.getLogger("pika").setLevel(logging.CRITICAL)
    # A failed attempt is told once, by the mirror, with the task and what becomes of it.
    logging.getLogger("dramatiq.worker.WorkerThread").setLevel(logging.CRITICAL)
    return logging.getLogger(service)
