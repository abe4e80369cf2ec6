"""`python -m bench.peers SYSTEM ACTION DATABASE_URL AMQP_URL …`: one system of the contest, in the peers' environment.

The actions: `prepare` makes its tables; `fill NUMBER` puts no-ops in and prints the seconds that it took; `sample
NOTES NUMBER` submits tasks one by one that note their start, and prints when; `hold NOTES` submits a long one; `work …`
is a worker.
"""

import importlib
import sys
import time

from bench.peers.tasks import Peer, Place

SAMPLE_SECONDS = 0.1
HOLD_SECONDS = 200


def main() -> None:
    system, action, database_url, amqp_url, *values = sys.argv[1:]
    peer: Peer = importlib.import_module(f"bench.peers.with_{system}").System(Place(database_url, amqp_url))
    if action == "prepare":
        peer.prepare()
    elif action == "work":
        peer.work(*values)
    else:
        with peer.connected():
            submit(peer, action, *values)


def submit(peer: Peer, action: str, *values: str) -> None:
    if action == "fill":
        began = time.perf_counter()
        peer.submit_no_ops(int(values[0]))
        print(time.perf_counter() - began)
    elif action == "hold":
        peer.submit_note(values[0], 0, HOLD_SECONDS)
    elif action == "sample":
        for key in range(int(values[1])):
            print(key, repr(time.time()), flush=True)
            peer.submit_note(values[0], key, 0)
            time.sleep(SAMPLE_SECONDS)


if __name__ == "__main__":
    main()
