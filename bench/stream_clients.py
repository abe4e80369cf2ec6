"""Many clients of event streams in one process: notes when each event arrived, and says so when it is told to stop.

python -m bench.stream_clients PORT KEY NUMBER TASK_ID…
"""

import asyncio
import json
import re
import sys
import time
from functools import partial

EVENT = re.compile(rb"id: (\d+)\nevent: progress\n")


class Client(asyncio.Protocol):
    """One open stream."""

    def __init__(self, task_id: str, head: bytes, arrivals: list[tuple[str, int, float]]) -> None:
        self._task_id = task_id
        self._head = head
        self._arrivals = arrivals
        self._rest = b""
        self.is_told = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._head)

    def data_received(self, data: bytes) -> None:
        now = time.time()
        self._rest += data
        end = self._rest.rfind(b"\n\n") + 2
        self.is_told = self.is_told or b"data: " in self._rest[:end]
        for match in EVENT.finditer(self._rest[:end]):
            self._arrivals.append((self._task_id, int(match[1]), now))
        self._rest = self._rest[end:]


async def listen(port: int, key: str, number: int, task_ids: list[str]) -> None:
    arrivals: list[tuple[str, int, float]] = []
    clients: list[Client] = []
    loop = asyncio.get_running_loop()
    for each in range(number):
        task_id = task_ids[each % len(task_ids)]
        head = f"GET /api/v1/tasks/{task_id}/stream HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {key}\r\n\r\n"
        _, client = await loop.create_connection(partial(Client, task_id, head.encode(), arrivals), "127.0.0.1", port)
        clients.append(client)
    while not all(client.is_told for client in clients):  # noqa: ASYNC110 - the condition is on the network
        await asyncio.sleep(0.05)
    print("ready", flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    json.dump(arrivals, sys.stdout)


if __name__ == "__main__":
    asyncio.run(listen(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:]))
