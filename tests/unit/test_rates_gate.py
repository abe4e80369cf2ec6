"""A provider's gate in a worker: who may pass without asking, while what was last seen grows old."""

import time

import pytest

from windlass.services.actors.worker import rates
from windlass.services.actors.worker.rate_backend import ProviderRate
from windlass.services.actors.worker.rates import Gate

LONG = 1000.0


def a_gate(*, believed_for_seconds: float, somebody_looks: bool = False) -> Gate:
    gate = Gate()
    gate.believed_until = time.monotonic() + believed_for_seconds
    if somebody_looks:
        gate.turn.acquire()
    return gate


def test_without_a_rate_nobody_asks_while_that_is_believed() -> None:
    assert a_gate(believed_for_seconds=LONG).is_open


def test_who_comes_after_that_looks_again() -> None:
    assert not a_gate(believed_for_seconds=0).is_open


def test_nobody_waits_for_the_one_who_looks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "GOES_ON_SECONDS", LONG)
    assert a_gate(believed_for_seconds=0, somebody_looks=True).is_open


def test_a_look_that_takes_too_long_is_waited_for() -> None:
    assert not a_gate(believed_for_seconds=-LONG, somebody_looks=True).is_open


def test_a_rate_in_force_is_asked_for_every_place() -> None:
    gate = a_gate(believed_for_seconds=LONG)
    gate.rate = ProviderRate.__new__(ProviderRate)
    assert not gate.is_open
