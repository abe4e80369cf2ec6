"""A provider of media whose calls are counted, whoever has written its adapter."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from windlass.services.actors.worker.metrics import provider_call
from windlass.shared.providers.base import (
    CannotTell,
    Done,
    Failed,
    Found,
    MediaProvider,
    NotThere,
    Order,
    Ordered,
    Pending,
    PreparingProvider,
    calls_back,
)
from windlass.shared.providers.params import Params, actions_of


class CountedProvider:
    """Says of each call which one it was, what came of it and how long it took."""

    def __init__(self, name: str, provider: MediaProvider) -> None:
        self._name = name
        self._provider = provider

    @property
    def actions(self) -> Mapping[str, type[Params]] | None:
        return actions_of(self._provider)

    @property
    def calls_back(self) -> bool:
        return calls_back(self._provider)

    async def prepare(self, order: Order) -> Order:
        if not isinstance(self._provider, PreparingProvider):
            return order
        with provider_call(self._name, "prepare"):
            return await self._provider.prepare(order)

    async def order(self, order: Order) -> Ordered:
        with provider_call(self._name, "order"):
            return await self._provider.order(order)

    async def poll(self, job_id: str) -> Pending | Done | Failed:
        with provider_call(self._name, "poll"):
            return await self._provider.poll(job_id)

    async def find(self, order: Order, intended_at: datetime) -> Found | NotThere | CannotTell:
        with provider_call(self._name, "find"):
            return await self._provider.find(order, intended_at)

    async def cancel(self, job_id: str) -> bool:
        with provider_call(self._name, "cancel"):
            return await self._provider.cancel(job_id)

    def job_of_callback(self, body: Any) -> str | None:
        return self._provider.job_of_callback(body)
