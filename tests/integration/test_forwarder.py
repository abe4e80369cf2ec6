"""The network of the storm: what each thing that can be done to a link looks like from both of its ends."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from tests.support.servers.forwarder import Forwarder, Forwarders
from tests.support.waiting import wait_until


class Echo:
    """Says back what it hears, and knows how many are there."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"tcp://127.0.0.1:{self._listening.getsockname()[1]}"
        self.here = 0
        self._counting = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self._count(1)
            thread = threading.Thread(target=self._answer, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            try:
                while heard := connection.recv(1000):
                    connection.sendall(heard)
            except OSError:
                pass
        self._count(-1)

    def _count(self, more: int) -> None:
        with self._counting:
            self.here += more

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for thread in (self._accepting, *self._threads):
            thread.join()


@pytest.fixture
def echo() -> Iterator[Echo]:
    echo = Echo()
    yield echo
    echo.close()


@pytest.fixture
def forwarders(echo: Echo) -> Iterator[Forwarders]:
    with Forwarders().running() as forwarders:
        yield forwarders


@pytest.fixture
def link(forwarders: Forwarders, echo: Echo) -> Forwarder:
    return forwarders.to(echo.url)


@contextmanager
def connected(link: Forwarder) -> Iterator[socket.socket]:
    port = urlsplit(link.url).port
    with socket.create_connection(("127.0.0.1", port or 0), timeout=60) as connection:
        yield connection


def said_back(connection: socket.socket, words: bytes = b"hello") -> bytes:
    connection.sendall(words)
    return connection.recv(1000)


def is_over(connection: socket.socket) -> bool:
    try:
        return said_back(connection) == b""
    except ConnectionError:
        return True


def test_what_is_said_arrives(link: Forwarder) -> None:
    with connected(link) as connection:
        assert said_back(connection) == b"hello"


def test_a_cut_ends_what_is_open_and_refuses_what_is_new(link: Forwarder) -> None:
    with connected(link) as connection:
        assert said_back(connection) == b"hello"
        link.cut()
        assert is_over(connection)
        with pytest.raises(ConnectionRefusedError), connected(link):
            pass
    link.mend()
    with connected(link) as connection:
        assert said_back(connection) == b"hello"


def test_a_reset_is_one_for_both_sides_and_new_ones_are_welcome(link: Forwarder, echo: Echo) -> None:
    with connected(link) as connection:
        assert said_back(connection) == b"hello"
        link.reset()
        with pytest.raises(ConnectionResetError):
            connection.recv(1000)
        wait_until("gone over there", lambda: echo.here == 0)
        with connected(link) as another:
            assert said_back(another) == b"hello"


def test_a_delay_holds_up_each_direction(link: Forwarder) -> None:
    with connected(link) as connection:
        assert said_back(connection) == b"hello"
        link.delay(0.2)
        began = time.monotonic()
        assert said_back(connection) == b"hello"
        assert time.monotonic() - began >= 0.4


def test_a_black_hole_keeps_connections_takes_new_ones_and_lets_nothing_pass(link: Forwarder, echo: Echo) -> None:
    with connected(link) as connection, connected(link) as leaving:
        assert said_back(connection) == said_back(leaving) == b"hello"
        link.freeze()
        with connected(link) as new:
            for each in (connection, new):
                each.settimeout(0.3)
                with pytest.raises(TimeoutError):
                    said_back(each)
                each.settimeout(60)
            leaving.close()
            assert echo.here == 2, "nobody over there knows that one has left"
            link.mend()
            assert connection.recv(1000) == new.recv(1000) == b"hello"
            wait_until("the other one has left", lambda: echo.here == 2)


@pytest.mark.parametrize("harm", ["freeze", "delay"])
def test_where_hang_ups_pass_they_pass_whatever_is_done(forwarders: Forwarders, echo: Echo, harm: str) -> None:
    link = forwarders.to(echo.url, passes_hang_ups=True)
    with connected(link) as connection:
        assert said_back(connection) == b"hello"
        if harm == "freeze":
            link.freeze()
        else:
            link.delay(60)
        connection.sendall(b"lost")
    wait_until("gone over there", lambda: echo.here == 0)


def test_several_servers_are_reached_in_turn_and_those_that_are_away_are_left_out(
    forwarders: Forwarders, echo: Echo
) -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))  # nobody else has the port meanwhile, and nobody listens
        away = f"tcp://127.0.0.1:{deaf.getsockname()[1]}"
        link = forwarders.to(away, echo.url)
        for _ in range(4):
            with connected(link) as connection:
                assert said_back(connection) == b"hello"
