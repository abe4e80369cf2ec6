"""The links of an installation, in a process of their own: a busy storm must not hold up its traffic."""

# As a program (`python -m tests.chaos.site.network`) it is told one JSON object a line on its standard input,
# answers each with a line, and ends when its input does.
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.helper_process import HelperProcess, helper_process
from tests.support.servers.forwarder import Forwarder, Forwarders


class Link:
    """A forwarder over there, by name."""

    def __init__(self, network: "Network", name: str, url: str) -> None:
        self._network = network
        self.name = name
        self.url = url

    def cut(self) -> None:
        self._network.tell("cut", self.name)

    def reset(self) -> None:
        self._network.tell("reset", self.name)

    def delay(self, seconds: float) -> None:
        self._network.tell("delay", self.name, seconds)

    def freeze(self) -> None:
        self._network.tell("freeze", self.name)

    def mend(self) -> None:
        self._network.tell("mend", self.name)


class Network:
    """As the storm holds it, from any thread."""

    def __init__(self, process: HelperProcess) -> None:
        self._process = process

    def link(self, name: str, *server_urls: str, passes_hang_ups: bool = False) -> Link:
        return Link(self, name, self.tell("link", name, list(server_urls), passes_hang_ups))

    def tell(self, order: str, *details: Any) -> str:
        return str(json.loads(self._process.tell(json.dumps([order, *details]))))


@contextmanager
def a_network() -> Iterator[Network]:
    with helper_process("tests.chaos.site.network") as process:
        yield Network(process)


def serve() -> None:
    links: dict[str, Forwarder] = {}
    with Forwarders().running() as forwarders:
        for line in sys.stdin:
            order, name, *details = json.loads(line)
            answer = "done"
            if order == "link":
                server_urls, passes_hang_ups = details
                links[name] = forwarders.to(*server_urls, passes_hang_ups=passes_hang_ups)
                answer = links[name].url
            else:
                getattr(links[name], order)(*details)
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve()
