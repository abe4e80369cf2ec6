"""Loads the actors that the settings name: each as it is declared, with its definition, or a sentence why not.

Only workers, `windlass actors check` and `windlass actors register` do so: it runs foreign code.
"""

import inspect
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from windlass.actors import Actor, Misdeclared
from windlass.actors.payload import Payload, payload_of, result_schema_of
from windlass.shared.actors.built_in import built_in, without_titles
from windlass.shared.actors.definition import Definition
from windlass.shared.actors.finding import find
from windlass.shared.actors.importing import NotLoaded, actors_in, line_of
from windlass.shared.actors.schemas import UnfitSchema, compiled
from windlass.shared.settings import OWN, Settings
from windlass.shared.suggestions import did_you_mean
from windlass.shared.toml_tables import DEFAULT_ACTORS, ActorSettings, Concurrency, ProviderSettings

MODULES = "WINDLASS_ACTORS"


@dataclass(frozen=True)
class LoadedActor:
    """An actor with its code, and what is known of it without."""

    actor: Actor[..., Any]
    payload: Payload
    definition: Definition
    isolate: bool = False
    """Whether each attempt has a process of its own."""


@dataclass
class Loaded:
    """What could be had, by name, and a sentence for what could not, by the actor's name or the module's."""

    settings: Settings
    actors: dict[str, LoadedActor] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)

    @property
    def definitions(self) -> list[Definition]:
        return [each.definition for each in self.actors.values()]

    def with_them(self) -> Settings:
        """The settings with the providers and tables of those actors that have none in the file."""
        own = [each.definition for each in self.actors.values() if each.definition.module is not None]
        added = {
            each.provider: ProviderSettings(actor=each.name)
            for each in own
            if each.provider is not None and each.provider not in self.settings.providers
        }
        tables = {each.name: _table_of(each, self.settings.actors.get(each.name, ActorSettings())) for each in own}
        return self.settings.model_copy(
            update={
                "providers": {**self.settings.providers, **added},
                "actors": {**self.settings.actors, **tables},
            }
        )

    def broken_queues(self) -> dict[str, str]:
        """By the queues that nobody can serve because of it; a module's own name stands for those that it hides."""
        return {place: said for name, said in self.broken.items() for place in self._queues_of(name)}

    def _queues_of(self, name: str) -> list[str]:
        known = [queue for queue in self.settings.all_queues() if queue.partition(".")[0] == name]
        table = self.settings.actors.get(name)
        if known or table is None:
            return known or [name]
        return [f"{name}.{table.provider or name}"]


def load(settings: Settings, *, only: Collection[str] | None = None) -> Loaded:
    """Those of the tables, all or `only` some, and all that the modules of `WINDLASS_ACTORS` declare, unless they are
    not asked for; among these `own` stands for all that do not come with Windlass."""
    loaded = Loaded(settings)
    names = [name for name in settings.actors if _is_asked_for(name, only)]
    for name in names:
        table = settings.actors[name]
        if table.module or table.function:
            _load_table(loaded, name, table)
    modules = settings.actor_modules if only is None or set(only) - DEFAULT_ACTORS.keys() else ()
    for named in modules:
        try:
            found = actors_in(named)
        except NotLoaded as error:
            loaded.broken[named] = f"{MODULES}: {error}"
            continue
        if not found:
            loaded.broken[named] = f"{MODULES}: {named} declares no actor"
        for actor in found.values():
            _add(loaded, actor, named, f"{MODULES}: {named}")
    for name, said in _tables_without_code(loaded, names):
        loaded.broken[name] = said
    return loaded


def _is_asked_for(name: str, only: Collection[str] | None) -> bool:
    return only is None or name in only or (OWN in only and name not in DEFAULT_ACTORS)


def _load_table(loaded: Loaded, name: str, table: ActorSettings) -> None:
    where = f"{_file(loaded.settings)}[actors.{name}]"
    try:
        actor = find(name, module=table.module, function=table.function)
    except (NotLoaded, Misdeclared) as error:
        loaded.broken[name] = f"{where}: {error}"
    else:
        _add(loaded, actor, table.function or str(table.module), where)


def _add(loaded: Loaded, actor: Actor[..., Any], module: str, where: str) -> None:
    name = actor.name
    if name in DEFAULT_ACTORS and module != DEFAULT_ACTORS[name]["module"]:
        said = f"its actor {name} is called as one that comes with Windlass; give it another name"
        loaded.broken[module] = f"{where}: {said}"
    elif name not in loaded.broken:
        try:
            loaded.actors[name] = _examined(loaded, actor, module)
        except (NotLoaded, Misdeclared) as error:
            loaded.actors.pop(name, None)  # of two with one name nobody knows which is meant
            line = line_of(actor) if isinstance(error, Misdeclared) else ""
            loaded.broken[name] = f"{where}: {error}{line}"


def _examined(loaded: Loaded, actor: Actor[..., Any], module: str) -> LoadedActor:
    name = actor.name
    there = loaded.actors.get(name)
    if there is not None and there.actor is actor:
        return there
    if there is not None:
        other = there.definition.module
        raise NotLoaded(f"an actor that is called {name} comes from {other}, too; give one of them another name")
    payload = payload_of(actor)
    isolate = _is_isolated(loaded, actor)
    definition = built_in()[name] if name in DEFAULT_ACTORS else _definition(loaded, actor, payload, module)
    try:
        compiled(definition.payload_schema)
    except UnfitSchema as error:
        raise NotLoaded(f"actor {name}: {error}") from None
    return LoadedActor(actor, payload, definition, isolate)


def _is_isolated(loaded: Loaded, actor: Actor[..., Any]) -> bool:
    table = loaded.settings.actors.get(actor.name, ActorSettings())
    isolate = actor.isolate if table.isolate is None else table.isolate
    if isolate and actor.name in DEFAULT_ACTORS:
        raise NotLoaded(f"{actor.name} comes with Windlass, and isolate is for actors of your own")
    if isolate and actor.is_class and "settings" in inspect.signature(actor.fn).parameters:
        raise NotLoaded(f"actor {actor.name} wants the settings, and there are none in the process of an isolated one")
    return isolate


def _definition(loaded: Loaded, actor: Actor[..., Any], payload: Payload, module: str) -> Definition:
    """What the code declares, and over it what the table says."""
    table = loaded.settings.actors.get(actor.name, ActorSettings())
    declared = 300 if actor.timeout_seconds is None else actor.timeout_seconds
    key, limit = actor.concurrency_key, actor.concurrency_limit
    if table.concurrency is not None:
        key, limit = table.concurrency.key, table.concurrency.limit
    definition = Definition(
        name=actor.name,
        payload_schema=without_titles(payload.schema()),
        result_schema=without_titles(result_schema_of(actor)),
        description=" ".join((actor.__doc__ or "").split()),
        module=module,
        provider=table.provider or actor.provider or actor.name,
        timeout_seconds=table.timeout_seconds if "timeout_seconds" in table.model_fields_set else declared,
        max_retries=actor.max_retries if table.max_retries is None else table.max_retries,
        max_age_seconds=actor.max_age_seconds if table.max_age_seconds is None else table.max_age_seconds,
        throws=tuple(sorted(each.__name__ for each in actor.throws)),
        concurrency_key=key,
        concurrency_limit=limit,
        memory=actor.memory if table.memory is None else table.memory,
        schedule=actor.schedule,
    )
    _check_provider(loaded.settings, definition)
    return definition


def _check_provider(settings: Settings, definition: Definition) -> None:
    name, provider = definition.name, str(definition.provider)
    configured = settings.providers.get(provider)
    if configured is not None and name not in configured.actors:
        actors = ", ".join(f'"{each}"' for each in (*configured.actors, name))
        raise NotLoaded(
            f"provider {provider} does the work of {' and '.join(configured.actors)} alone; write actors = [{actors}] "
            f"in [providers.{provider}], or give {name} another provider"
        )
    if configured is None and provider != name:
        meant = did_you_mean(provider, settings.providers)
        raise NotLoaded(f'there is no [providers.{provider}]; {meant} A new one has actors = ["{name}"]')


def _tables_without_code(loaded: Loaded, names: Collection[str]) -> Iterator[tuple[str, str]]:
    """Tables that only change what a module of `WINDLASS_ACTORS` declares, when none does."""
    for name in names:
        table = loaded.settings.actors[name]
        if not (name in loaded.actors or name in loaded.broken or table.module or table.function):
            modules = ", ".join(loaded.settings.actor_modules)
            yield name, f"{_file(loaded.settings)}[actors.{name}]: neither has it a `module`, nor is it in {modules}"


def _table_of(definition: Definition, table: ActorSettings) -> ActorSettings:
    limit = definition.concurrency_limit
    key = None if limit is None else Concurrency(key=definition.concurrency_key, limit=limit)
    return ActorSettings.model_validate(
        {
            **{name: getattr(table, name) for name in table.model_fields_set},
            "provider": definition.provider,
            "timeout_seconds": definition.timeout_seconds,
            "max_retries": definition.max_retries,
            "max_age_seconds": definition.max_age_seconds,
            "concurrency": key,
            "memory": definition.memory,
        }
    )


def _file(settings: Settings) -> str:
    return f"{settings.config}: " if settings.config else ""
