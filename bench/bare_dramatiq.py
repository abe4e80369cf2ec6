"""The ceiling: Dramatiq itself draining no-ops from RabbitMQ, with its default middleware and no state at all.

`python -m bench.bare_dramatiq AMQP_URL THREADS`: prints `ready`, answers every line that it is sent with how many have
started so far, and runs until its standard input is closed; then it prints the wall-clock time of every start, one a
line.
"""

import sys
import time

import dramatiq
from dramatiq.brokers.rabbitmq import RabbitmqBroker

STARTS: list[float] = []


def declare(amqp_url: str) -> "tuple[RabbitmqBroker, dramatiq.Actor[[], None]]":
    broker = RabbitmqBroker(url=amqp_url)

    def no_op() -> None:
        STARTS.append(time.time())

    return broker, dramatiq.actor(actor_name="no_op", queue_name="bare", broker=broker)(no_op)


def main() -> None:
    broker, _ = declare(sys.argv[1])
    worker = dramatiq.Worker(broker, worker_threads=int(sys.argv[2]))
    worker.start()
    print("ready", flush=True)
    for _ in sys.stdin:
        print(len(STARTS), flush=True)
    worker.stop()
    print("\n".join(map(str, STARTS)))


if __name__ == "__main__":
    main()
