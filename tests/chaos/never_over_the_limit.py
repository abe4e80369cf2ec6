"""`make chaos`: 2,000 short tasks against a provider that counts, while workers are killed, frozen and restarted and
the limit is changed on the way. Ends with 1 when the provider saw more than was allowed, or a task's story is wrong."""

import os
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.counting_provider import counting_provider
from tests.databases import execute, migrate
from tests.limit_drill import LimitDrill, durations
from tests.servers import throw_away_servers

TASKS = int(os.environ.get("TASKS", "2000"))
SEED = int(os.environ.get("SEED", str(random.SystemRandom().randrange(10**6))))
ACTORS = 3
LIMIT = 4
LIMITS = (1, 2, 4, 4, 6)
BETWEEN_HARM_SECONDS = 2.5
AT_MOST_SECONDS = 420


def say(words: str) -> None:
    print(words, flush=True)


def harm_until_finished(drill: LimitDrill, dice: random.Random) -> None:
    """Every few seconds somebody is killed, frozen or restarted, now and then with another limit or stray doorbells."""
    began = time.monotonic()
    while (finished := drill.finished()) < TASKS and (spent := time.monotonic() - began) < AT_MOST_SECONDS:
        harm = drill.shake(dice)
        if dice.random() < 0.4:
            harm += f", {drill.change_limit(dice.choice(LIMITS))}"
        if dice.random() < 0.1:
            harm += f", {drill.ring_for_everything()}"
        say(f"{spent:5.0f} s  {finished:5d} finished  {drill.provider.open_calls} open  {harm}")
        time.sleep(BETWEEN_HARM_SECONDS * dice.uniform(0.5, 1.5))


def report(drill: LimitDrill) -> list[str]:
    calls = drill.provider.calls
    by_company = [sum(len(call.company) == number for call in calls) for number in range(1, max(LIMITS) + 2)]
    say(f"harm: {drill.harm_done}")
    say(f"events: {drill.sums()}")
    say(f"the provider saw {len(calls)} calls, {sum(not call.answered for call in calls)} of them cut off")
    say(f"calls by how many were then open, from 1: {by_company}; most at once {drill.provider.most_at_once}")
    faults = drill.overshoots() + drill.oddities()
    if drill.finished() < TASKS:
        faults.append(f"only {drill.finished()} of {TASKS} tasks ended within {AT_MOST_SECONDS} s")
    return faults


def main() -> None:
    say(f"{TASKS} tasks, {ACTORS} actors processes, limit {LIMIT} at first; SEED={SEED} throws the same dice again")
    dice = random.Random(SEED)
    with (
        throw_away_servers() as servers,
        tempfile.TemporaryDirectory() as directory,
        counting_provider() as provider,
    ):
        execute(servers.database_url, "CREATE DATABASE chaos")
        database_url = servers.database_url.rsplit("/", 1)[0] + "/chaos"
        migrate(database_url)
        drill = LimitDrill(database_url, servers.amqp_url, Path(directory), provider, limit=LIMIT, actors=ACTORS)
        try:
            drill.start()
            drill.submit(durations(dice, TASKS))
            harm_until_finished(drill, dice)
            faults = report(drill)
        finally:
            drill.windlass.stop()
        if faults:
            say(drill.windlass.log())
    for fault in faults[:50]:
        say(f"WRONG: {fault}")
    say("the limit did not hold, or a story is wrong" if faults else "the limit held, and every task completed once")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
