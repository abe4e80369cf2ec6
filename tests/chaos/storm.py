"""`make chaos`: a seeded storm of faults over a whole Windlass under mixed load, judged from outside.

SEED, MINUTES, TASKS and FAULTS choose another one; LOG names a file for what the processes say. Ends with 1 when a
promise was broken.
"""

import os
import random
import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.chaos.installation import Installation
from tests.chaos.network import a_network
from tests.chaos.run import Storm, Verdict, bound_seconds
from tests.chaos.schedule import schedule
from tests.support.servers.private_servers import open_directory
from tests.support.servers.restartable_servers import restartable_postgres, restartable_rabbitmq

MINUTES = float(os.environ.get("MINUTES", "6"))
SEED = int(os.environ.get("SEED", str(random.SystemRandom().randrange(10**6))))
TASKS = int(os.environ.get("TASKS", "2000"))
FAULTS = int(os.environ.get("FAULTS", str(max(1, round(10 * MINUTES)))))
LOG = os.environ.get("LOG")
UNCAUGHT = "an error that nobody caught"
"""As the processes themselves say it."""


def say(words: str) -> None:
    print(words, flush=True)


def run(stack: ExitStack) -> tuple[Verdict, int]:
    """The judge's word, and how many threads or processes were ended by an error that nobody had thought of."""
    directory = stack.enter_context(open_directory())
    say("starting Postgres, RabbitMQ and everything that is to be harmed")
    postgres = stack.enter_context(restartable_postgres())
    rabbitmq = stack.enter_context(restartable_rabbitmq())
    network = stack.enter_context(a_network())
    installation = Installation(postgres, rabbitmq.url, network, directory, rabbitmq=rabbitmq)
    stack.callback(installation.stop)
    plan = schedule(SEED, 60 * MINUTES, FAULTS, installation.places())
    storm = Storm(installation, plan, seed=SEED, seconds=60 * MINUTES, tasks=TASKS, say=say)
    verdict = None
    try:
        verdict = storm.run()
        uncaught = installation.log().count(UNCAUGHT)
    finally:
        if LOG or verdict is None or verdict.violations or uncaught:
            log = Path(LOG or f"{tempfile.gettempdir()}/windlass-chaos-{SEED}.log")
            log.write_text(installation.log())
            say(f"what the processes said is in {log}")
    return verdict, uncaught


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # told to end, it takes everything down with it
        signal.signal(number, signal.default_int_handler)
    say(f"{TASKS} tasks and {FAULTS} faults in {MINUTES:g} minutes, then {bound_seconds():.0f} s of calm at most")
    say(f"the same storm again: SEED={SEED} MINUTES={MINUTES:g} TASKS={TASKS} FAULTS={FAULTS} make chaos")
    try:
        with ExitStack() as stack:
            verdict, uncaught = run(stack)
    except KeyboardInterrupt:
        say("stopped; everything that was started is gone")
        sys.exit(130)
    for story in verdict.stories:
        say(f"\n{story}")
    if uncaught:
        say(f"\n{uncaught} times a thread or a process was ended by an error that nobody caught; SEED={SEED}")
    if verdict.violations:
        say(f"\n{len(verdict.violations)} times a promise was broken; SEED={SEED} throws the same dice again")
    else:
        say("every promise was kept")
    sys.exit(1 if verdict.violations or uncaught else 0)


if __name__ == "__main__":
    main()
