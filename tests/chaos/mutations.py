"""`make mutations`: breaks the engine on purpose, in one way after the other, and demands that each is noticed.

Most are noticed by the judge of storms, the small ones by a test each. The product has no switch for this: a
function is replaced in the database, or a module is changed as it is loaded. With names as arguments only those are
tried; `control` is the unbroken engine. What came of each is kept in `docs/proof/mutations.json`, for the table of
`docs/proof.md`. Ends with 1 when a mutation stays unnoticed.
"""

import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from bench.surroundings import commit
from docs.mutations import CONTROL, Result, keep
from docs.proven import redraw
from tests.chaos.breaking.catalogue import MUTATIONS
from tests.chaos.breaking.changes import Mutation, alter, prepare
from tests.chaos.breaking.scenes import LEASE_SECONDS, SCENES, Stage
from tests.chaos.breaking.small_changes import SmallMutation, is_noticed, small_mutations
from tests.chaos.judge.checker import Violation, judge, settle, tell
from tests.chaos.judge.processes import ProcessWatch
from tests.chaos.site.installation import Installation, Size
from tests.chaos.site.network import a_network
from tests.support.servers.private_servers import open_directory
from tests.support.servers.restartable_servers import restartable_postgres, restartable_rabbitmq

BOUND_SECONDS = 45.0
SIZE = Size(apis=1, dispatchers=1, actors=2, receivers=1, threads=8)
PROVIDERS = ("openrouter", "leonardo", "midjourney")


def say(words: str) -> None:
    print(words, flush=True)


def try_out(name: str, mutation: Mutation | None) -> list[Violation]:
    """What the judge says about the scenes of one mutation, or about all of them with the engine as it is."""
    with ExitStack() as stack:
        directory = stack.enter_context(open_directory())
        postgres = stack.enter_context(restartable_postgres())
        rabbitmq = stack.enter_context(restartable_rabbitmq())
        network = stack.enter_context(a_network())
        installation = Installation(postgres, rabbitmq.url, network, directory, rabbitmq=rabbitmq, size=SIZE)
        stack.callback(installation.stop)
        installation.environment |= {"WINDLASS_LEASE_SECONDS": f"{LEASE_SECONDS:g}", **prepare(mutation, directory)}
        installation.start()
        alter(mutation, installation.database_url)
        watch = ProcessWatch(installation.record)
        stack.callback(watch.stop)
        watch.start()
        for scene in dict.fromkeys(SCENES.values()) if mutation is None else (SCENES[mutation.name],):
            play(scene, Stage(installation, random.Random()))
        installation.record.books = {each: installation.fake.books(each) for each in PROVIDERS}
        url = installation.database_url
        found = judge(installation.record, url, bound_seconds=BOUND_SECONDS, lease_seconds=LEASE_SECONDS)
        if mutation is None:
            for violation in found[:5]:
                say(tell(violation, installation.record, url))
        elif not any(each.criterion == mutation.criterion for each in found):
            log = Path(tempfile.gettempdir()) / f"windlass-mutation-{name}.log"
            log.write_text(installation.log())
            say(f"what the processes said is in {log}")
    return found


def play(scene: Callable[[Stage], None], stage: Stage) -> None:
    """One scene, and then the calm in which everything has to end."""
    scene(stage)
    deadline = time.monotonic() + BOUND_SECONDS
    for load in stage.loads:
        load.finish(within=max(1.0, deadline - time.monotonic()))
    settle(stage.installation.database_url, within=max(1.0, deadline - time.monotonic()))


def line(name: str, expected: int | None, found: list[Violation], seconds: float) -> tuple[str, bool]:
    """A row of the table, and whether the judge has said what it should."""
    counts = Counter(violation.criterion for violation in found)
    red = ", ".join(f"{number}: {count}" for number, count in sorted(counts.items())) or "none"
    is_right = not found if expected is None else counts[expected] > 0
    wanted = "nothing" if expected is None else f"criterion {expected}"
    verdict = "as it should be" if is_right else "NOT NOTICED" if expected else "RED WITHOUT A CAUSE"
    return f"  {name:28s} {wanted:12s} violations by criterion: {red:24s} {seconds:4.0f} s  {verdict}", is_right


def remember(name: str, noticed: bool, seconds: float, found: Sequence[Violation] = ()) -> None:
    counts = Counter(violation.criterion for violation in found)
    findings = {str(number): count for number, count in sorted(counts.items())}
    keep(name, Result(noticed, round(seconds, 1), datetime.now(UTC).date().isoformat(), commit(), findings))


def try_small(mutation: SmallMutation) -> tuple[str, bool]:
    say(f"{mutation.name}: {mutation.words}")
    with open_directory() as directory:
        began = time.monotonic()
        noticed = is_noticed(mutation, directory)
    remember(mutation.name, noticed, time.monotonic() - began)
    words = f"  {mutation.name:33s} {'noticed' if noticed else 'NOT NOTICED'} by {mutation.test}"
    say(words)
    return words, noticed


def main() -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    small = {mutation.name: mutation for mutation in small_mutations()}
    every: dict[str, Mutation | None] = {CONTROL: None} | {mutation.name: mutation for mutation in MUTATIONS}
    lines, all_right = [], True
    for name in sys.argv[1:] or [*small, *every]:
        if name in small:
            words, is_right = try_small(small[name])
            lines.append(words)
            all_right = all_right and is_right
            continue
        mutation = every[name]
        say(f"{name}: {mutation.words if mutation else 'the engine as it is, through all scenes'}")
        began = time.monotonic()
        found = try_out(name, mutation)
        seconds = time.monotonic() - began
        words, is_right = line(name, mutation.criterion if mutation else None, found, seconds)
        remember(name, is_right if mutation else bool(found), seconds, found)
        say(words)
        lines.append(words)
        all_right = all_right and is_right
    redraw()
    say("\n".join(["", *lines]))
    say("each of them is noticed" if all_right else "who should notice is not to be trusted")
    sys.exit(0 if all_right else 1)


if __name__ == "__main__":
    main()
