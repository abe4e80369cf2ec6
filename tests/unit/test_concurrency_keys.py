"""Which tasks share a concurrency key, by their payloads and the defaults of their actor."""

from typing import Any

import pytest
from pydantic import BaseModel, Field

from tests.support.engine.submissions import accepted
from windlass.actors import Actor
from windlass.actors.payload import payload_of
from windlass.shared.concurrency_keys import key_of
from windlass.shared.settings import Settings


class Customer(BaseModel):
    name: str
    region: str = "eu"


class Order(BaseModel):
    customer: Customer | None = Field(default_factory=lambda: Customer(name="nobody"))
    account: str = "main"
    copies: dict[str, int] = {"a": 1, "b": 2}


def order(order: Order) -> None: ...


SCHEMA = payload_of(Actor(order)).schema()


@pytest.mark.parametrize(
    ("payload", "pointers", "key"),
    [
        ({}, ["/account"], "main"),
        ({"account": "a"}, ["/account"], "a"),
        ({"account": None}, ["/account"], None),
        ({"customer": {"name": "x"}}, ["/customer/region"], "eu"),
        ({"customer": {"name": "x", "region": "us"}}, ["/customer/region"], "us"),
        ({"customer": None}, ["/customer/region"], None),
        ({}, ["/copies/b"], "2"),
        ({}, ["/account", "/copies"], '["main",{"a":1,"b":2}]'),
        ({}, ["/customer/name"], None),
    ],
)
def test_what_a_payload_leaves_out_has_its_default(payload: dict[str, Any], pointers: list[str], key: str) -> None:
    assert key_of(payload, pointers, SCHEMA) == key


def test_a_submit_takes_the_default_of_the_actor() -> None:
    settings = Settings.model_validate({"actors": {"probe": {"concurrency": {"key": "/outcome", "limit": 1}}}})
    assert accepted({"actor": "probe", "payload": {}}, settings=settings).concurrency_key == "ok"
    assert (
        accepted({"actor": "probe", "payload": {"outcome": "transient"}}, settings=settings).concurrency_key
        == "transient"
    )
