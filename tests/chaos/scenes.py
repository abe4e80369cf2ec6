"""The scenes of `make chaos`: who works with an installation while it is harmed, and how many of them."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields

from tests.chaos.faults.plan import EVERYTHING, EVERYTHING_AT_ONCE, LIMITS, Place
from tests.chaos.load.clients import Load
from tests.chaos.memory import wishes as memories
from tests.chaos.projects.load import ProjectsLoad
from tests.chaos.projects.load import Scale as ScaleOfProjects
from tests.chaos.run import Load as AnyLoad
from tests.chaos.schedules.load import Scale as ScaleOfSchedules
from tests.chaos.schedules.load import SchedulesLoad
from tests.chaos.site.installation import Installation, Size
from tests.chaos.steps import wishes as walks
from tests.chaos.webhooks.load import Scale as ScaleOfWebhooks
from tests.chaos.webhooks.load import WebhooksLoad, Where
from tests.chaos.workflows.load import Scale as ScaleOfWorkflows
from tests.chaos.workflows.load import WorkflowsLoad

ALL = "all"
"""All of them in one storm."""


@dataclass(frozen=True)
class Numbers:
    """Each can be said by a variable of its name, in capitals."""

    tasks: int
    projects: int
    loop: int
    """How many items the loop has that nobody touches."""
    workflows: int
    told: int
    schedules: int
    remembered: int
    """A tenth of them agents, the others summaries."""
    walks: int
    deeds: int
    """Of each kind of people."""


def numbers(scene: str, minutes: float, environment: Mapping[str, str]) -> Numbers:
    """In a storm of all, each comes with about a fifth of what it has when it is alone."""
    found = _together(minutes) if scene == ALL else _alone(minutes)
    said = {each.name: environment.get(each.name.upper()) for each in fields(Numbers)}
    return Numbers(**{name: int(said[name] or value) for name, value in vars(found).items()})


def _alone(minutes: float) -> Numbers:
    return Numbers(
        tasks=2000,
        projects=20,
        loop=100,
        workflows=100,
        told=max(30, round(60 * minutes)),
        schedules=60,
        remembered=round(2000 * min(1.0, minutes / 6)),
        walks=max(30, round(60 * minutes)),
        deeds=max(30, round(70 * minutes)),
    )


def _together(minutes: float) -> Numbers:
    return Numbers(
        tasks=max(50, round(90 * minutes)),
        projects=6,
        loop=max(10, round(6 * minutes)),
        workflows=max(5, round(4 * minutes)),
        told=max(15, round(12 * minutes)),
        schedules=12,
        remembered=max(20, round(25 * minutes)),
        walks=max(20, round(20 * minutes)),
        deeds=max(15, round(14 * minutes)),
    )


@dataclass(frozen=True)
class Script:
    """What a load is made of."""

    seed: int
    seconds: float
    numbers: Numbers

    def dice(self, name: str) -> random.Random:
        return random.Random(f"{name} {self.seed}")


def tasks(installation: Installation, script: Script) -> AnyLoad:
    where, number = (installation.api_url, installation.record), script.numbers.tasks
    return Load(*where, script.dice("load"), tasks=number, seconds=script.seconds)


def memory(installation: Installation, script: Script) -> AnyLoad:
    where, number, dice = (installation.api_url, installation.record), script.numbers.remembered, script.dice("memory")
    wishes = memories.plan(dice, tasks=number, seconds=script.seconds)
    return Load(*where, dice, tasks=number, seconds=script.seconds, wishes=wishes, followers=1)


def steps(installation: Installation, script: Script) -> AnyLoad:
    where, number, dice = (installation.api_url, installation.record), script.numbers.walks, script.dice("steps")
    installation.record.books_of_steps = installation.books_of_steps
    wishes = walks.plan(dice, walks=number, seconds=script.seconds)
    return Load(*where, dice, tasks=number, seconds=script.seconds, wishes=wishes, followers=1)


def projects(installation: Installation, script: Script) -> AnyLoad:
    sizes = script.numbers
    scale = ScaleOfProjects(projects=sizes.projects, deeds=sizes.deeds, long_loop=sizes.loop)
    where = installation.api_url, installation.record
    return ProjectsLoad(*where, script.dice("projects"), seconds=script.seconds, scale=scale)


def workflows(installation: Installation, script: Script) -> AnyLoad:
    scale = ScaleOfWorkflows(workflows=script.numbers.workflows, deeds=script.numbers.deeds)
    where = installation.api_url, installation.database_url, installation.record
    return WorkflowsLoad(*where, script.dice("workflows"), seconds=script.seconds, scale=scale)


def webhooks(installation: Installation, script: Script) -> AnyLoad:
    receiver = installation.links["receiver"].url, installation.directory / "receiver"
    where = Where(installation.api_url, installation.database_url, *receiver)
    scale = ScaleOfWebhooks(tasks=script.numbers.told, deeds=script.numbers.deeds)
    return WebhooksLoad(where, installation.record, script.dice("webhooks"), seconds=script.seconds, scale=scale)


def schedules(installation: Installation, script: Script) -> AnyLoad:
    scale = ScaleOfSchedules(schedules=script.numbers.schedules, deeds=script.numbers.deeds)
    where = installation.api_url, installation.database_url, installation.record
    return SchedulesLoad(*where, script.dice("schedules"), seconds=script.seconds, scale=scale)


@dataclass(frozen=True)
class Scene:
    words: str
    """With the names of numbers."""
    load: Callable[[Installation, Script], AnyLoad]
    numbers: tuple[str, ...]
    size: Size = field(default_factory=Size)
    has_limits: bool = False
    """Limits of providers are changed; else everything fails at once now and then."""


SCENES = {
    "tasks": Scene("{tasks} tasks", tasks, ("tasks",), has_limits=True),
    "projects": Scene(
        "{deeds} deeds on {projects} projects, a loop of {loop} items", projects, ("projects", "loop", "deeds")
    ),
    "workflows": Scene("{workflows} workflows of 20 tasks, {deeds} deeds on them", workflows, ("workflows", "deeds")),
    "webhooks": Scene(
        "{told} tasks that eleven endpoints are told of, {deeds} deeds on those",
        webhooks,
        ("told", "deeds"),
        Size(receivers=1),
    ),
    "schedules": Scene(
        "{schedules} schedules before several janitors, {deeds} deeds on them",
        schedules,
        ("schedules", "deeds"),
        Size(janitors=3),
    ),
    "memory": Scene(
        "{remembered} agents and summaries whose ends are written down", memory, ("remembered",), has_limits=True
    ),
    "steps": Scene("{walks} tasks of somebody's own actors, which work in steps", steps, ("walks",)),
}


def played(name: str) -> list[Scene]:
    return list(SCENES.values()) if name == ALL else [SCENES[name]]


def size_of(name: str) -> Size:
    return Size(janitors=2, receivers=1) if name == ALL else SCENES[name].size


def places(name: str, installation: Installation) -> list[Place]:
    """What is harmed in which way."""
    everywhere = installation.places()
    at_once = Place(EVERYTHING, EVERYTHING_AT_ONCE)
    if name == ALL:
        return [*everywhere, at_once]
    if SCENES[name].has_limits:
        return everywhere
    return [*(place for place in everywhere if place.kinds != LIMITS), at_once]
