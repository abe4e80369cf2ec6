"""Log lines on stderr, the same in every process, with no secret in any of them."""

import logging
import sys
import threading
from types import TracebackType

from windlass.shared import scrubbing
from windlass.shared.process.log_lines import JsonLines, TextLines
from windlass.shared.process.rabbitmq_lines import LOGGER, RabbitmqLines
from windlass.shared.settings import Settings


def start(settings: Settings, service: str) -> logging.Logger:
    """Sets up logging for this process and returns the service's own logger."""
    scrubbing.learn(settings.secrets())
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(TextLines() if _are_for_people(settings) else JsonLines(service))
    handler.addFilter(RabbitmqLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.log_level.upper())
    for chatty in ("alembic", "httpx", "httpcore", "periodiq", "dramatiq.worker", "uvicorn"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    # A lost connection is told once, by whoever needs it, without pages of tracebacks.
    logging.getLogger("pika").setLevel(logging.CRITICAL)
    logging.getLogger(LOGGER).setLevel(logging.INFO)  # or an outage that was told of would never end
    logging.captureWarnings(True)  # noqa: FBT003 - the signature is the library's
    log = logging.getLogger(service)
    _tell_what_nobody_caught(log)
    return log


def _are_for_people(settings: Settings) -> bool:
    """What goes to no terminal is collected, and searched by its fields; `windlass up` asks for text itself."""
    return settings.log_format == "text" or (settings.log_format == "auto" and sys.stderr.isatty())


def _tell_what_nobody_caught(log: logging.Logger) -> None:
    """Python itself would print such an error as it is."""

    def uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error, trace)
        else:
            log.critical("ended by an error that nobody caught", exc_info=(kind, error, trace))

    def uncaught_in_thread(what: threading.ExceptHookArgs) -> None:
        if what.exc_value is not None:
            uncaught(what.exc_type, what.exc_value, what.exc_traceback)

    def ignored(what: "sys.UnraisableHookArgs") -> None:
        """As in a destructor, where nobody could have caught it."""
        log.error("an error that nobody could catch, in %r", what.object, exc_info=what.exc_value)

    sys.excepthook = uncaught
    sys.unraisablehook = ignored
    threading.excepthook = uncaught_in_thread
