"""The actors that rows speak of, kept in memory: no submission costs a question about its actor."""

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from windlass.shared import db
from windlass.shared.actors.built_in import built_in
from windlass.shared.actors.definition import Definition
from windlass.shared.actors.faults import Fault
from windlass.shared.actors.schemas import UnfitSchema
from windlass.shared.actors.terms import Terms, terms_of
from windlass.shared.actors.versions import Version, faults_by_any
from windlass.shared.settings import Settings
from windlass.shared.store.operating import registry
from windlass.shared.store.operating.registry import RegisteredVersion, Served

log = logging.getLogger("api")


@dataclass(frozen=True)
class Running:
    """A version and the workers that run it."""

    version: Version
    workers: tuple[str, ...]


class KnownActor:
    """An actor as tasks are checked by it. `versions` are all that count, the last registered first: that one speaks
    for the actor, whether or not anybody runs it, and the others while somebody does."""

    def __init__(self, versions: Sequence[Running], served_by: Sequence[str] = ()) -> None:
        """`served_by` are its providers that have rows; what the configuration says is not among them."""
        self.versions = tuple(versions)
        self.served_by = tuple(served_by)
        self.definition = self.versions[0].version.definition
        self.name = self.definition.name
        self.is_built_in = self.definition.module is None
        self._checks = tuple(each.version for each in self.versions)
        self._take = tuple(each.validator.is_valid for each in self._checks)
        self._terms: tuple[Settings, Terms] | None = None

    def faults_of(self, payload: Any, beside: Collection[str] = ()) -> list[Fault]:
        for takes in self._take:
            if not takes(payload):
                return faults_by_any(self._checks, payload, beside)
        return []

    def terms(self, settings: Settings) -> Terms:
        """What holds for its tasks; worked out once, for each submission asks."""
        if self._terms is None or self._terms[0] is not settings:
            self._terms = (settings, terms_of(self.definition, settings))
        return self._terms[1]

    def is_served_by(self, provider: str, settings: Settings) -> bool:
        """A provider's table says whom it serves; of one that has none the actor's definition says it, and rows."""
        configured = settings.providers.get(provider)
        if configured is not None:
            return self.name in configured.actors
        return not self.is_built_in and (provider == self.definition.provider or provider in self.served_by)

    def providers(self, settings: Settings) -> list[str]:
        """Who may be asked."""
        named = {*settings.providers, *self.served_by, self.definition.provider or self.name}
        return sorted(each for each in named if self.is_served_by(each, settings))


Actors = Mapping[str, KnownActor]


def built_in_actors() -> dict[str, KnownActor]:
    """Those that are known without a row."""
    return {name: KnownActor((Running(Version.of(each), ()),)) for name, each in built_in().items()}


class Registry:
    """What counts now. It follows what is registered within moments, for it is told; and looks now and then by itself,
    for who dies says nothing."""

    def __init__(self, settings: Settings, pool: db.Database) -> None:
        self._settings = settings
        self._pool = pool
        self._built_in = built_in_actors()
        self._compiled: dict[tuple[str, str], Version | None] = {}
        self._news = asyncio.Event()
        self.actors: Actors = self._built_in

    def heard(self, _said: str) -> None:
        self._news.set()

    async def run(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            with suppress(*db.AWAY_OR_BUSY):  # what was known goes on until there is a better answer
                await self.look(self._pool)

    async def look(self, connection: db.Database) -> None:
        """Now and then by a connection that would be asked something anyway."""
        with suppress(*db.NOT_MIGRATED):
            rows = await registry.read(connection, heard_within_seconds=self._settings.lease_seconds)
            served = await registry.queues(connection)
            self.actors = {**self._built_in, **self._known(rows, served)}

    def _known(self, rows: Iterable[RegisteredVersion], served: Iterable[Served]) -> dict[str, KnownActor]:
        counting: dict[str, list[Running]] = {}
        seen = set()
        for row in rows:
            seen.add((row.actor, row.version))
            if row.is_last and row.registered_at is None and row.actor in self._built_in:
                # Only a worker has told of it, perhaps one that strayed in here: this build's own counts as well.
                counting[row.actor] = [
                    each for each in self._built_in[row.actor].versions if each.version.name != row.version
                ]
            version = self._version(row)
            counts = row.workers or (row.is_last and not counting.get(row.actor))
            if version is not None and counts:
                counting.setdefault(row.actor, []).append(Running(version, tuple(row.workers)))
        self._compiled = {key: version for key, version in self._compiled.items() if key in seen}
        providers: dict[str, list[str]] = {}
        for each in served:
            providers.setdefault(each.actor, []).append(each.provider)
        return {name: KnownActor(tuple(each), tuple(providers.get(name, ()))) for name, each in counting.items()}

    def _version(self, row: RegisteredVersion) -> Version | None:
        """Compiled once. One that this build cannot read is as if nobody had registered it."""
        key = (row.actor, row.version)
        if key not in self._compiled:
            try:
                definition = msgspec.convert(row.definition, Definition)
                self._compiled[key] = Version.of(definition, row.version)
            except (UnfitSchema, msgspec.ValidationError) as error:
                log.critical("version %s of the actor %s is left out: %s", row.version, row.actor, error)
                self._compiled[key] = None
        return self._compiled[key]
