"""Dramatiq's own way to run one task at a time: its ConcurrentRateLimiter, whose refusals its Retries bring back.

`python -m bench.peers.limiter AMQP_URL QUEUE TASKS TASK_SECONDS SECONDS [MIN_BACKOFF MAX_BACKOFF]` sends the tasks,
works for so many seconds, and prints when that was over, and start and end of every one that had the slot. The
limiter's state is in this process, which is its best case: it usually asks Redis.
"""

import sys
import time
from typing import Any

import dramatiq
from dramatiq.brokers.rabbitmq import RabbitmqBroker
from dramatiq.rate_limits import ConcurrentRateLimiter
from dramatiq.rate_limits.backends import StubBackend

THREADS = 8
"""Dramatiq's default for a process."""


def main() -> None:
    amqp_url, queue, tasks, task_seconds, seconds, *backoff = sys.argv[1:]
    broker = RabbitmqBroker(url=amqp_url)
    limiter = ConcurrentRateLimiter(StubBackend(), "single", limit=1)  # type: ignore[no-untyped-call]
    held: list[tuple[float, float]] = []

    def work() -> None:
        with limiter.acquire():
            began = time.time()
            time.sleep(float(task_seconds))
            held.append((began, time.time()))

    options: dict[str, Any] = {}
    if backoff:
        options = {"min_backoff": int(backoff[0]), "max_backoff": int(backoff[1]), "max_retries": None}
    actor = dramatiq.actor(broker=broker, queue_name=queue, **options)(work)
    for _ in range(int(tasks)):
        actor.send()
    worker = dramatiq.Worker(broker, worker_threads=THREADS)
    worker.start()
    deadline = time.monotonic() + float(seconds)
    while time.monotonic() < deadline and len(held) < int(tasks):
        time.sleep(0.1)
    print(time.time())
    for began, ended in held:
        print(began, ended)
    sys.stdout.flush()
    worker.stop(timeout=2000)


if __name__ == "__main__":
    main()
