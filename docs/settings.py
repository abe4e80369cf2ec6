"""Draws the page of all settings from the models that read them."""

from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from windlass.shared.errors import ERROR_TYPES
from windlass.shared.retry_delays import BUILT_IN_CURVE, OTHER, Curve, RetrySettings, Schedules
from windlass.shared.schedules.definition import Definition as ScheduleDefinition
from windlass.shared.settings import DEFAULT_AGENTS, DEFAULT_PROVIDERS, Settings
from windlass.shared.settings.variables import NOT_SETTINGS, Variables
from windlass.shared.toml_tables import (
    DEFAULT_ACTORS,
    ActorSettings,
    AgentLimits,
    AgentSettings,
    Concurrency,
    LaneSettings,
    NetworkSettings,
    ProviderSettings,
    Rate,
    TaskDefaults,
    WorkerSettings,
)

SETTINGS = Path(__file__).parent / "settings.md"

TABLES: dict[str, type[BaseModel]] = {
    "providers.NAME": ProviderSettings,
    "providers.NAME.rate": Rate,
    "schedules.NAME": ScheduleDefinition,
    "agents.NAME": AgentSettings,
    "agents.NAME.limits": AgentLimits,
    "actors.NAME": ActorSettings,
    "actors.NAME.concurrency": Concurrency,
    "retries": RetrySettings,
    "actors.NAME.retries], [agents.NAME.retries], [providers.NAME.retries": Schedules,
    "lanes": LaneSettings,
    "defaults": TaskDefaults,
    "network": NetworkSettings,
    "worker": WorkerSettings,
}

BEGINNING = """\
# Every setting

Drawn from `shared/settings` and `shared/toml_tables.py` by `make fmt`; `make check` fails when this page is stale.
Settings are read once, at the start of a process: the environment over the file that `WINDLASS_CONFIG` names over the
defaults below. A mistake is told with the file, the table and the key and with what would be right, one line each, and
nothing starts; neither does it with a combination that cannot keep the promises.

## Variables

In the file each of them has the same name in small letters and without `WINDLASS_`, above all tables:
`WINDLASS_LEASE_SECONDS=60` is `lease_seconds = 60`. The tables themselves can be given in the environment, too, as
JSON: `WINDLASS_PROVIDERS='{"probe": {"limit": 3}}'`; they are merged key by key.
"""

EXAMPLE = """\
## A file

The file declares providers, each one a queue with a limit of its own. No `limit` means no limit; 0 starts nothing. A
`rate` is how many tasks may start in so many seconds, over all workers; who waits for it stays `queued`. (Submit with
`"provider": "slow"`.)

```toml
[providers.slow]
actor = "probe"
limit = 2
rate = {limit = 5, per_seconds = 60}

[providers.openrouter]
model = "vendor/name"
call_timeout_seconds = 60

[agents.reviewer]
command = ["/opt/reviewer/run", "--json"]
timeout_seconds = 3600
limits = {memory_mb = 4096, cpu_seconds = 1800, file_mb = 500, files = 20000, processes = 64}
sandbox = "required"          # or "best-effort", "off"; if left out, what WINDLASS_AGENT_SANDBOX says
network = true                # public addresses alone where slirp4netns is installed, else the machine's own network
env = {REVIEWER_MODE = "batch"}
permanent_exit_codes = [3]

[agents.reviewer.retries]
SubprocessFailed = {curve = "exponential", base = 2, cap = 60}   # also for an actor, a provider, or all: [retries]

[defaults]
max_retries = 5

[network]
allow_private = ["10.20.0.5"] # private addresses that providers and downloads may use all the same
```
"""

DELAYS = """\
A delay is a list of seconds whose last entry is repeated, `[5, 10, 30]`, or a curve,
`{curve = "exponential", base = 2, cap = 300}`: baseⁿ, or base·n² (`quadratic`), with n from 1, at most `cap`. The
narrowest table that says something about a type of error wins: the task's own (`retry_delays`), the agent's, its
actor's, its provider's, `[retries]`, then what is built in. A provider's `Retry-After` is kept to, whatever the tables
say.
"""

NONE = "\N{EN DASH}"

TYPES = {"str": "text", "int": "whole number", "float": "number", "bool": "true or false", "Path": "path"}


def settings() -> str:
    drawn = {*Variables.model_fields, *(name.partition(".")[0] for name in TABLES)}
    assert set(Settings.model_fields) == drawn & set(Settings.model_fields), "a table is missing here"
    return "\n".join(
        [
            BEGINNING,
            "| variable | type | default | what it sets |",
            "|---|---|---|---|",
            *(_row(f"WINDLASS_{name.upper()}", field) for name, field in Variables.model_fields.items()),
            "",
            EXAMPLE,
            "## Tables",
            "",
            *(line for name, model in TABLES.items() for line in _table(name, model)),
            DELAYS,
            "| curve | type | default | what it sets |",
            "|---|---|---|---|",
            *(_row(name, field) for name, field in Curve.model_fields.items()),
            "",
            "## What is there before the file",
            "",
            *(line for line in _built_in("providers", DEFAULT_PROVIDERS)),
            *(line for line in _built_in("actors", DEFAULT_ACTORS)),
            f"And one agent, {', '.join(f'`{name}`' for name in DEFAULT_AGENTS)}, which tells what it was given.",
            "",
            "## Variables that are no settings",
            "",
            "A variable that begins with `WINDLASS_` and is not on this page is refused, since it is a mistake most of",
            "the time. These mean something to others:",
            "",
            "| variable | whose it is |",
            "|---|---|",
            *(f"| `{name}` | {said} |" for name, said in NOT_SETTINGS.items()),
            "",
        ]
    )


def _table(name: str, model: type[BaseModel]) -> Iterator[str]:
    yield from (
        f"### `[{name}]`",
        "",
        _sentence(model),
        "",
        "| key | type | default | what it sets |",
        "|---|---|---|---|",
    )
    for key, field in model.model_fields.items():
        yield _row(
            field.alias or key, field, _built_in_delays(field.alias or key) if issubclass(model, Schedules) else None
        )
    yield ""


def _sentence(model: type[BaseModel]) -> str:
    return " ".join((model.__doc__ or "").split())


def _row(name: str, field: FieldInfo, default: str | None = None) -> str:
    assert field.description, f"{name} has no description"
    cells = (f"`{name}`", _type(field.annotation), default or _default(field), field.description)
    return f"| {' | '.join(cells)} |"


def _type(kind: Any) -> str:
    origin = get_origin(kind)
    inner = [each for each in get_args(kind) if each is not type(None)]
    if Curve in map(_plain, inner):
        return "delays"
    if origin is Annotated or origin in {Union, UnionType}:
        return _type(inner[0])
    if origin is Literal:
        return ", ".join(f"`{each}`" for each in inner)
    if origin is tuple:
        return f"list: {_type(inner[0])}"
    is_table = origin is dict or (isinstance(kind, type) and issubclass(kind, BaseModel))
    return "table" if is_table else TYPES[kind.__name__]


def _plain(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "must be given"
    value = field.get_default(call_default_factory=True)
    return NONE if value in (None, (), {}) or isinstance(value, BaseModel) else f"`{_toml(value)}`"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(_toml(each) for each in value)}]"
    return (
        f"{value:_}".replace("_", "")
        if isinstance(value, int)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )


def _built_in_delays(name: str) -> str | None:
    if name != OTHER and name not in ERROR_TYPES:
        return None
    delays = None if name == OTHER else ERROR_TYPES[name].delays
    if delays is not None:
        return f"`{_toml(tuple(delays))}`"
    return f"`{BUILT_IN_CURVE.base:g}·n²`, at most `{BUILT_IN_CURVE.cap:g}`"


def _built_in(table: str, entries: dict[str, dict[str, Any]]) -> Iterator[str]:
    yield "```toml"
    for name, entry in entries.items():
        yield f"[{table}.{name}]"
        yield from (
            f"{key} = {value if not isinstance(value, str) else repr(value)}".replace("'", '"')
            for key, value in entry.items()
        )
    yield from ("```", "")
