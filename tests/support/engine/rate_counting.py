"""`python -m tests.support.engine.rate_counting DATABASE_URL KEY TIMES MAXIMUM`: one of several processes that count.

Prints `ready`, waits for a line, then increments the key so often, up to the maximum, and prints how often it could.
"""

import sys

from windlass.services.actors.worker.rate_backend import PostgresBackend
from windlass.services.actors.worker.writing.writer import Writer
from windlass.shared.settings import Settings


def main() -> None:
    database_url, key, times, maximum = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    # A call that is given up may have counted all the same: on a busy machine it is waited for.
    settings = Settings(database_url=database_url, stop_grace_seconds=60, lease_seconds=180)
    writer = Writer(settings, "counting", on_claim=lambda _tokens, _lease_end: None)
    writer.start()
    backend = PostgresBackend(writer)
    backend.add(f"{key}@0", 0, 60_000)
    print("ready", flush=True)
    sys.stdin.readline()
    slices = [f"{key}@{number}" for number in range(4)]
    taken = [backend.incr_and_sum(slices[turn % 4], lambda: slices, 1, maximum, 60_000) for turn in range(times)]
    print(sum(taken), flush=True)
    writer.close(timeout=60)


if __name__ == "__main__":
    main()
