"""The tests' HTTP clients share whom they trust, and nobody else shares anything."""

import ssl
from pathlib import Path

import certifi


def test_whom_the_world_trusts_is_read_once() -> None:
    assert ssl.create_default_context(cafile=certifi.where()) is ssl.create_default_context(cafile=certifi.where())


def test_any_other_context_is_its_maker_s_own() -> None:
    assert ssl.create_default_context() is not ssl.create_default_context()
    own = ssl.create_default_context(cadata=Path(certifi.where()).read_text())
    assert own is not ssl.create_default_context(cafile=certifi.where())
