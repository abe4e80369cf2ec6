"""The actors that the settings name, those that come with Windlass among them, and what is wrong with the others."""

from collections.abc import Sequence
from typing import NamedTuple

from windlass.shared.actors.definition import Definition
from windlass.shared.actors.loading import MODULES, load
from windlass.shared.actors.mistakes import mistakes_in
from windlass.shared.settings import Settings


class Found(NamedTuple):
    """Those that can be registered, and a sentence for each mistake."""

    definitions: Sequence[Definition]
    mistakes: Sequence[str]


def find(settings: Settings) -> Found:
    loaded = load(settings)
    return sound(loaded.definitions, list(loaded.broken.values()))


def find_in_modules(settings: Settings) -> Found:
    """The actors of the modules that `WINDLASS_ACTORS` names, without those of the tables."""
    loaded = load(settings)
    definitions = [each for each in loaded.definitions if each.module in settings.actor_modules]
    return sound(definitions, [said for said in loaded.broken.values() if said.startswith(f"{MODULES}: ")])


def sound(definitions: Sequence[Definition], failures: Sequence[str]) -> Found:
    """One that is wrong keeps nobody else from being registered."""
    wrong = {each.name: mistakes_in(each) for each in definitions}
    good = [each for each in definitions if not wrong[each.name]]
    return Found(good, [*failures, *(sentence for sentences in wrong.values() for sentence in sentences)])
