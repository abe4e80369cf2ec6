"""The clock that leases are measured by on this side: it counts on while the machine sleeps, as Postgres' does."""

import time


def boot_time() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)
