"""Guessed keys are counted per address, in bounded memory; and whose address it is, a proxy says only when trusted."""

from ipaddress import ip_network

import pytest

from windlass.services.api.access.throttle import FAILURES, MOST_ADDRESSES, WINDOW_SECONDS, Throttle, client_address


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_the_first_failures_are_only_counted_and_the_next_ones_are_told_to_wait() -> None:
    clock = Clock()
    throttle = Throttle(clock)
    assert [throttle.failed("1.2.3.4") for _ in range(FAILURES)] == [None] * FAILURES
    assert throttle.failed("1.2.3.4") == WINDOW_SECONDS
    clock.now += 45.5
    assert throttle.failed("1.2.3.4") == 15
    assert throttle.failed("1.2.3.5") is None


def test_a_minute_after_the_first_failure_the_count_begins_again() -> None:
    clock = Clock()
    throttle = Throttle(clock)
    for _ in range(FAILURES + 5):
        throttle.failed("1.2.3.4")
    clock.now += WINDOW_SECONDS
    assert throttle.failed("1.2.3.4") is None


def test_any_number_of_addresses_takes_bounded_memory() -> None:
    throttle = Throttle(Clock())
    for number in range(MOST_ADDRESSES + 500):
        throttle.failed(f"address {number}")
    assert len(throttle) == MOST_ADDRESSES


TRUSTED = [ip_network("10.0.0.0/8"), ip_network("fd00::/8")]


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("203.0.113.7", [], "203.0.113.7"),
        ("203.0.113.7", ["198.51.100.1"], "203.0.113.7"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["192.0.2.66, 198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["192.0.2.66, 198.51.100.1, 10.9.9.9"], "198.51.100.1"),
        ("10.0.0.1", ["192.0.2.66", "198.51.100.1", "10.9.9.9"], "198.51.100.1"),
        ("10.0.0.1", ["10.1.1.1, 10.2.2.2"], "10.1.1.1"),
        ("10.0.0.1", ["198.51.100.1, nonsense"], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1, nonsense, 10.2.2.2"], "10.2.2.2"),
        ("10.0.0.1", [",,,"], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1:4711"], "198.51.100.1"),
        ("::ffff:10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("fd00::1", ["[2001:db8::5]:443"], "2001:db8::/64"),
        ("2001:db8::6", [], "2001:db8::/64"),
        (None, ["198.51.100.1"], "unknown"),
    ],
)
def test_the_address_is_the_right_most_one_that_no_trusted_proxy_has(
    peer: str | None, forwarded: list[str], address: str
) -> None:
    assert client_address(peer, forwarded, TRUSTED) == address


def test_without_trusted_proxies_no_header_is_believed() -> None:
    assert client_address("127.0.0.1", ["198.51.100.1"], []) == "127.0.0.1"
