"""The actors that tasks can be submitted to, as rows and this build have them."""

import functools
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from windlass.shared.actors.built_in import built_in
from windlass.shared.actors.definition import Definition
from windlass.shared.actors.faults import Fault
from windlass.shared.actors.schemas import UnfitSchema
from windlass.shared.actors.terms import Terms, terms_of
from windlass.shared.actors.versions import Version, faults_by_any
from windlass.shared.errors import words_of
from windlass.shared.settings import Settings
from windlass.shared.store.operating.registry import RegisteredVersion, Served

log = logging.getLogger("registry")

MOST_COMPILED = 1024


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


@functools.cache
def built_in_actors() -> Actors:
    """Those that are known without a row."""
    return {name: known_without_a_row(each) for name, each in built_in().items()}


def known_without_a_row(definition: Definition) -> KnownActor:
    return KnownActor((Running(Version.of(definition), ()),))


def known_actors(rows: Iterable[RegisteredVersion], served: Iterable[Served]) -> dict[str, KnownActor]:
    """What counts by these rows, and the actors that come with this build. The rows may be one actor's: then of the
    others only those."""
    own = built_in_actors()
    counting: dict[str, list[Running]] = {}
    for row in rows:
        if row.is_last and row.registered_at is None and row.actor in own:
            # Only a worker has told of it, perhaps one that strayed in here: this build's own counts as well.
            counting[row.actor] = [each for each in own[row.actor].versions if each.version.name != row.version]
        version = version_of(row)
        counts = row.workers or (row.is_last and not counting.get(row.actor))
        if version is not None and counts:
            counting.setdefault(row.actor, []).append(Running(version, tuple(row.workers)))
    providers: dict[str, list[str]] = {}
    for each in served:
        providers.setdefault(each.actor, []).append(each.provider)
    found = {name: KnownActor(each, providers.get(name, ())) for name, each in counting.items() if each}
    return {**own, **found}


def version_of(row: RegisteredVersion) -> Version | None:
    """One that this build cannot read is as if nobody had registered it."""
    return _compiled(row.actor, row.version, msgspec.json.encode(row.definition))


@functools.lru_cache(MOST_COMPILED)
def _compiled(actor: str, version: str, definition: bytes) -> Version | None:
    """Once in a process, which then says once what it cannot read."""
    try:
        return Version.of(msgspec.json.decode(definition, type=Definition), version)
    except (UnfitSchema, msgspec.ValidationError) as error:
        log.critical("version %s of the actor %s is left out: %s", version, actor, words_of(error))
        return None
