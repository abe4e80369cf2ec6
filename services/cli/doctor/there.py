"""The Windlass that answers: key, parts, migration, clock, and queues that nobody serves, or cannot."""

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from windlass import Client, Forbidden, Health, Unauthorized, Unreachable, WindlassError
from windlass.client.errors import ApiError
from windlass.client.operations import Worker
from windlass.services.cli.doctor.finding import Finding, bad, note, ok

MOST_CLOCK_SECONDS: Final = 2.0
OLDEST: Final = {"postgres": ("Postgres", (15,)), "broker": ("RabbitMQ", (3, 10))}
"""What Windlass is tried on: with older servers nobody knows."""
MIGRATIONS: Final = Path(__file__).parents[3] / "shared" / "migrations" / "versions"
SERVE: Final = "start one for these queues: `WINDLASS_QUEUES=… windlass worker`"
MEND: Final = (
    "mend it and restart that worker; `windlass actors check` there, with its settings, says it without a server"
)
REMEDIES: Final = {
    "postgres": "see that it runs, has room and lets Windlass in; `windlass migrate` brings its schema",
    "broker": "see that RabbitMQ runs and has memory and disk; tasks are accepted meanwhile",
    "dispatcher": "start one: `windlass dispatcher`",
    "orchestrator": "start one: `windlass orchestrator`",
    "janitor": "start one: `windlass janitor`",
    "workers": f"{SERVE}; one that is broken has a line of its own",
    "breakers": "`windlass providers` says why; it tries again by itself",
}


def look_there(url: str, client: Client) -> Iterator[Finding]:
    """Stops at the first thing that keeps the rest from being known."""
    try:
        asked_at, began = datetime.now(UTC), time.monotonic()
        health = client.health()
        took = time.monotonic() - began
    except Unreachable as error:
        yield bad("api", str(error), "start it with `make up` or `windlass api`, or say where it is with --url")
        return
    except WindlassError as error:
        yield bad("api", str(error), "see that it is a Windlass that answers there, and look into its log")
        return
    yield ok("api", f"answers at {url} in {1000 * took:.0f} ms")
    yield clock(health, asked_at, took)
    if not health.components:
        yield bad("key", "it is not known there", "make one with `windlass keys create`, and give it with --key")
        return
    yield from parts(health)
    yield from versions(health)
    yield migration(health)
    yield from queues(client)
    with suppress(Unauthorized, Forbidden):  # who works for everybody is not for users
        yield from broken(client.workers())


def clock(health: Health, asked_at: datetime, took: float) -> Finding:
    """The server's time lies somewhere between question and answer."""
    if health.timestamp is None:
        return note("clock", "the api does not say what time it is", "it is of another version")
    ahead = (health.timestamp - asked_at).total_seconds()
    difference = ahead if ahead < 0 else max(0.0, ahead - took)
    detail = f"the server's is {abs(difference):.1f} s {'behind' if difference < 0 else 'ahead of'} this one"
    if abs(difference) > MOST_CLOCK_SECONDS:
        return bad("clock", detail, "set both by NTP: run_at, signed URLs and ages are told by the server's clock")
    return ok("clock", "the same here and there")


def parts(health: Health) -> Iterator[Finding]:
    for name, part in health.components.items():
        detail = part.detail or part.status
        if part.status == "healthy":
            yield ok(f"its {name}", detail)
        else:
            yield (note if part.status == "degraded" else bad)(f"its {name}", detail, REMEDIES.get(name, "see its log"))


def versions(health: Health) -> Iterator[Finding]:
    """Of the servers, as far as they are known: what runs on one that is too old may fail anywhere."""
    for name, (server, oldest) in OLDEST.items():
        version = health.components[name].version if name in health.components else None
        wanted = ".".join(map(str, oldest))
        if version is None or not numbers_in(version):
            yield note(f"{server} version", "is not known", f"see what is said of its {name}")
        elif numbers_in(version) < oldest:
            yield bad(f"{server} version", f"{version}, which is too old", f"upgrade it to {wanted} or newer")
        else:
            yield ok(f"{server} version", f"{version}; {wanted} or newer is wanted")


def numbers_in(version: str) -> tuple[int, ...]:
    """As far as there are some: `15.14`, `3.13.7`, `18beta1`, `4.1.0-rc.2`."""
    return tuple(int(part[0]) for each in version.split(".") if (part := re.match(r"\d+", each)))


def migration(health: Health) -> Finding:
    """As far as this installation's own migrations go; the api itself refuses a schema that is too old for it."""
    newest = max((each.name[:4] for each in MIGRATIONS.glob("[0-9][0-9][0-9][0-9]_*.py")), default=None)
    found = health.components["postgres"].revision if "postgres" in health.components else None
    if found is None or newest is None:
        return note("migration", "the revision is not known", "see what is said of its postgres")
    if found < newest:
        return bad("migration", f"the schema is at {found}, and this version's at {newest}", "run `windlass migrate`")
    if found > newest:
        return note(
            "migration", f"the schema is at {found}, newer than this version's {newest}", "upgrade this one, too"
        )
    return ok("migration", f"the schema is at {found}, the newest")


def queues(client: Client) -> Iterator[Finding]:
    try:
        answer = client.queues()
    except (Unauthorized, Forbidden) as error:
        yield bad("key", error.detail, "make one with `windlass keys create`, and give it with --key")
        return
    except ApiError as error:
        yield bad("queues", str(error), "look into the api's log")
        return
    yield ok("key", "is known there")
    waiting = [each.queue for each in answer.queues if not each.workers and each.fresh + each.retry]
    idle = [each.queue for each in answer.queues if not each.workers and each.queue not in waiting]
    if waiting:
        yield bad("queues", f"tasks wait where no worker serves: {', '.join(waiting)}", SERVE)
    elif idle:
        yield note("queues", f"nobody serves {', '.join(idle)}; nothing waits there", SERVE)
    else:
        yield ok("queues", "each has a worker")


def broken(workers: Sequence[Worker]) -> Iterator[Finding]:
    """Queues that a worker was to serve and cannot: to be mended at once where no other serves them."""
    living = [each for each in workers if each.state == "active"]
    served = {queue for each in living for queue in each.queues}
    reasons = {queue: reason for each in living for queue, reason in each.broken.items()}
    for queue, reason in sorted(reasons.items()):
        hosts = ", ".join(sorted({each.hostname for each in living if queue in each.broken}))
        say = note if queue in served else bad
        yield say(f"queue {queue}", f"a worker at {hosts} cannot serve it: {reason}", MEND)
