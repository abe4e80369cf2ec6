"""A load generator that costs little: raw HTTP/1.1 over kept connections, one request under way on each.

`python -m bench.loader PORT CONNECTIONS COUNT` reads the requests to send, in turn, as a JSON list of strings from its
standard input, and prints the seconds that it took. An answer that is no success ends it.
"""

import asyncio
import json
import sys
import time
from itertools import cycle, islice
from typing import cast

import uvloop


class Sender(asyncio.Protocol):
    """One connection: sends the next request when the answer to the last one is complete."""

    def __init__(self, work: "asyncio.Queue[bytes]", done: "asyncio.Future[None]") -> None:
        self._work = work
        self._done = done
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._send()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, separator, body = self._received.partition(b"\r\n\r\n")
        if not separator:
            return
        lowered = head.lower()
        length = int(lowered.partition(b"content-length:")[2].partition(b"\r\n")[0])
        if len(body) < length:
            return
        if head[9:10] != b"2":
            self._end(AssertionError(self._received.decode()))
            return
        self._received = b""
        self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(exc or ConnectionError("the server hung up"))

    def _send(self) -> None:
        if self._work.empty():
            self._end(None)
        else:
            self._transport.write(self._work.get_nowait())

    def _end(self, error: BaseException | None) -> None:
        if not self._done.done():
            self._done.set_result(None) if error is None else self._done.set_exception(error)
            self._transport.close()


async def load(port: int, connections: int, requests: list[bytes]) -> float:
    loop = asyncio.get_running_loop()
    work: asyncio.Queue[bytes] = asyncio.Queue()
    for request in requests:
        work.put_nowait(request)
    started = time.perf_counter()
    done = [loop.create_future() for _ in range(connections)]
    for future in done:
        await loop.create_connection(lambda future=future: Sender(work, future), "127.0.0.1", port)  # type: ignore[misc]
    await asyncio.gather(*done)
    return time.perf_counter() - started


def main() -> None:
    port, connections, count = map(int, sys.argv[1:])
    requests = [request.encode() for request in islice(cycle(json.load(sys.stdin)), count)]
    print(uvloop.run(load(port, connections, requests)))


if __name__ == "__main__":
    main()
