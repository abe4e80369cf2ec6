"""What the janitor says to Prometheus: when each duty was last done to its end, and how long it took."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from windlass.shared.metrics.services import JANITOR_DUTY_SECONDS, JANITOR_LAST_SUCCESS

Duty = Literal["stale", "sweep", "statistics"]


@contextmanager
def performing(duty: Duty) -> Iterator[None]:
    """A duty that fails is not done, and does not count."""
    started = time.monotonic()
    yield
    JANITOR_DUTY_SECONDS.labels(duty).observe(time.monotonic() - started)
    JANITOR_LAST_SUCCESS.labels(duty).set_to_current_time()
