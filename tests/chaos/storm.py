"""`make chaos`: a seeded storm of faults over a whole Windlass, judged from outside, with everybody at work in it at
once: clients of plain tasks, people with projects, workflows, endpoints and schedules, agents that are remembered, and
somebody's own actors with steps. Then a chain of work and a delivery, killed at every failpoint, and a worker to which
something happens with somebody at every place of its pipeline.

SCENE names others: one kind of work alone, with more of it. SEED, MINUTES, FAULTS, TASKS, PROJECTS, LOOP, WORKFLOWS,
TOLD, SCHEDULES, REMEMBERED, WALKS and DEEDS choose another storm; LOG names a file for what the processes say. What
came of it is kept in `docs/proof/storms.json`, for the table of `docs/proof.md`, unless KEEP is `no`. Ends with 1 when
a promise was broken.
"""

import os
import random
import signal
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from bench.surroundings import commit
from docs.proven import redraw
from docs.storms import FAILPOINTS, keep
from docs.storms import Storm as KeptStorm
from tests.chaos.faults.plan import absence, schedule
from tests.chaos.judge.rows import count_matter
from tests.chaos.pipeline import failpoints as failpoints_of_the_pipeline
from tests.chaos.run import Storm, Verdict, bound_seconds
from tests.chaos.scenes import ALL, Script, numbers, places, played, size_of
from tests.chaos.site.installation import Installation
from tests.chaos.site.network import a_network
from tests.chaos.webhooks import failpoints as failpoints_of_deliveries
from tests.chaos.workflows import failpoints
from tests.support.servers.private_servers import open_directory
from tests.support.servers.restartable_servers import restartable_postgres, restartable_rabbitmq

MINUTES = float(os.environ.get("MINUTES", "6"))
SEED = int(os.environ.get("SEED", str(random.SystemRandom().randrange(10**6))))
FAULTS = int(os.environ.get("FAULTS", str(max(1, round(10 * MINUTES)))))
LOG = os.environ.get("LOG")
KEEP = os.environ.get("KEEP", "yes") != "no"
UNCAUGHT = "an error that nobody caught"
"""As the processes themselves say it."""


def say(words: str) -> None:
    print(words, flush=True)


@dataclass(frozen=True)
class Outcome:
    verdict: Verdict
    uncaught: int
    """How many threads or processes were ended by an error that nobody had thought of."""
    missing: list[str]
    """What there was none of, where there should have been everything."""
    surprises: int = 0
    """How often a client was answered as nobody should be, though nothing was lost by it."""
    faults: int = 0
    kinds: int = 0
    matter: dict[str, int] = field(default_factory=dict)

    @property
    def is_good(self) -> bool:
        return not (self.verdict.violations or self.uncaught or self.missing or self.surprises)


def run(scene: str, script: Script, stack: ExitStack) -> Outcome:
    directory = stack.enter_context(open_directory())
    say("starting Postgres, RabbitMQ and everything that is to be harmed")
    postgres = stack.enter_context(restartable_postgres())
    rabbitmq = stack.enter_context(restartable_rabbitmq())
    network = stack.enter_context(a_network())
    size = size_of(scene)
    installation = Installation(postgres, rabbitmq.url, network, directory, rabbitmq=rabbitmq, size=size)
    stack.callback(installation.stop)
    plan = schedule(SEED, script.seconds, FAULTS, places(scene, installation))
    plan = sorted([*plan, absence(SEED, script.seconds, "orchestrator")], key=lambda planned: planned.at)
    loads = [each.load(installation, script) for each in played(scene)]
    storm = Storm(installation, plan, loads, seconds=script.seconds, say=say)
    verdict = None
    try:
        verdict = storm.run()
        uncaught = installation.log().count(UNCAUGHT)
    finally:
        if LOG or verdict is None or verdict.violations or uncaught:
            log = Path(f"{LOG}-{scene}" if LOG else f"{tempfile.gettempdir()}/windlass-chaos-{scene}-{SEED}.log")
            log.write_text(installation.log())
            say(f"what the processes said is in {log}")
    record = installation.record
    of_all = (record.projects.calls, record.workflows.calls, record.webhooks.calls, record.schedules.calls)
    calls = [call.status for each in of_all for call in each]
    answered = len(calls) - calls.count(None)
    say(f"{len(record.accepted)} tasks accepted; {len(calls)} calls of people, {answered} of them answered")
    kinds = {fault.words.partition(":")[0] for fault in record.faults}
    say(f"{len(record.faults)} faults of {len(kinds)} kinds")
    matter = count_matter(installation.database_url)
    say("there were " + ", ".join(f"{number} {name}" for name, number in matter.items() if number))
    missing = [name for name, number in matter.items() if scene == ALL and not number]
    return Outcome(verdict, uncaught, missing, len(record.oddities), len(record.faults), len(kinds), matter)


def play(scene: str) -> bool:
    """Whether every promise was kept."""
    script = Script(SEED, 60 * MINUTES, numbers(scene, MINUTES, os.environ))
    for each in played(scene):
        say(each.words.format(**vars(script.numbers)))
    say(f"and {FAULTS} faults in {MINUTES:g} minutes, then {bound_seconds():.0f} s of calm at most")
    sizes = dict.fromkeys(name for each in played(scene) for name in each.numbers)
    same = " ".join(f"{name.upper()}={getattr(script.numbers, name)}" for name in sizes)
    say(f"the same storm again: SCENE={scene} SEED={SEED} MINUTES={MINUTES:g} {same} FAULTS={FAULTS} make chaos")
    chosen = [name for name in (*map(str.upper, sizes), "FAULTS") if name in os.environ]
    with ExitStack() as stack:
        outcome = run(scene, script, stack)
    for story in outcome.verdict.stories:
        say(f"\n{story}")
    if outcome.missing:
        say(f"\nthere were no {', '.join(outcome.missing)}: nothing is proven of them")
    if outcome.uncaught:
        say(f"\n{outcome.uncaught} times a thread or a process was ended by an error that nobody caught; SEED={SEED}")
    if outcome.surprises:
        say(f"\n{outcome.surprises} times a client was surprised; SEED={SEED}")
    if outcome.verdict.violations:
        say(f"\n{len(outcome.verdict.violations)} times a promise was broken; SEED={SEED} throws the same dice again")
    else:
        say("every promise was kept")
    remember(
        KeptStorm(
            scene,
            outcome.faults,
            len(outcome.verdict.violations),
            *when(),
            seed=SEED,
            minutes=MINUTES,
            sizes=" ".join(f"{name}={os.environ[name]}" for name in chosen),
            tasks=outcome.matter["tasks"],
            kinds=outcome.kinds,
            matter=outcome.matter,
            uncaught=outcome.uncaught,
            missing=outcome.missing,
            surprises=outcome.surprises,
        )
    )
    return outcome.is_good


def when() -> tuple[str, str]:
    """The day and the commit."""
    return datetime.now(UTC).date().isoformat(), commit()


def remember(storm: KeptStorm) -> None:
    if KEEP:
        keep(storm)
        redraw()


def kill_everywhere() -> bool:
    """All lists, also the next where one was not kept."""
    places = len(failpoints.failpoints()) + len(failpoints_of_deliveries.failpoints())
    places += len(failpoints_of_the_pipeline.rounds())
    kept = [failpoints.play(say), failpoints_of_deliveries.play(say), failpoints_of_the_pipeline.play(say)]
    remember(KeptStorm(FAILPOINTS, places, kept.count(False), *when()))
    return all(kept)


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # told to end, it takes everything down with it
        signal.signal(number, signal.default_int_handler)
    try:
        scenes = os.environ.get("SCENE", f"{ALL} {FAILPOINTS}").split()
        kept = [kill_everywhere() if scene == FAILPOINTS else play(scene) for scene in scenes]
    except KeyboardInterrupt:
        say("stopped; everything that was started is gone")
        sys.exit(130)
    sys.exit(0 if all(kept) else 1)


if __name__ == "__main__":
    main()
