"""Short storms, one for each mutation: the one fault that a broken engine does not get over, at the right moment."""

import asyncio
import random
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM
from typing import Any

import pika

from tests.chaos.faults.carrying_out import workers_of
from tests.chaos.judge.provider_books import SEEN_LATE_SECONDS
from tests.chaos.load.clients import Load
from tests.chaos.load.wishes import Wish
from tests.chaos.projects.scenes import press_run, stop_loops
from tests.chaos.record import Fault
from tests.chaos.schedules.scenes import let_a_time_be_skipped, let_times_come_again
from tests.chaos.site.installation import Installation, Unit
from tests.chaos.webhooks.scenes import tell_an_endpoint
from tests.chaos.workflows.scenes import decide_twice, expand_twice, revive_what_completed, submit_lists
from tests.support.servers.databases import ask
from tests.support.waiting import wait_until
from windlass.shared.process.procfs import ProcessIdentity

WAIT_SECONDS = 60
LEASE_SECONDS = 8.0
"""Longer than in other tests: each scene has moments that it must not miss on a busy machine."""
EVENTS = "SELECT count(*) FROM task_events"
MARKED = {"probe": "result", "media": "prompt", "summarize": "content", "agent": "prompt", "walk": "mark"}
"""The one field of a payload that its actor gives back, or its provider gets to see."""


@dataclass
class Stage:
    """An installation, and the loads that were put on it."""

    installation: Installation
    dice: random.Random
    loads: list[Load] = field(default_factory=list)
    _number: int = 0

    def load(self, *wishes: Wish) -> None:
        seconds = max(wish.at for wish in wishes)
        record = self.installation.record
        api_url = self.installation.api_url
        load = Load(api_url, record, self.dice, tasks=len(wishes), seconds=seconds, wishes=wishes)
        self.loads.append(load)
        load.start()

    def wish(self, actor: str, payload: dict[str, Any], **fields: Any) -> Wish:
        """With a mark of its own."""
        self._number += 1
        mark = f"mark-{self.dice.getrandbits(40):x}-{self._number:03d}"
        where = MARKED[actor]
        said = payload.get(where)
        wish = Wish(self._number, 0.0, mark, {"actor": actor, **fields})
        wish.body["payload"] = {**payload, where: f"{mark} {said}" if said else mark}
        return wish

    def ask(self, query: str, *values: Any) -> list[Any]:
        return [row[0] for row in ask(self.installation.database_url, query, *values)]

    def wait_until(self, what: str, condition: Callable[[], Any]) -> Any:
        return wait_until(what, condition, seconds=WAIT_SECONDS, every=0.1)

    def has_events(self, number: int) -> bool:
        return bool(self.ask(EVENTS)[0] >= number)

    def actors(self) -> list[Unit]:
        return [unit for name, unit in self.installation.units.items() if name.startswith("actors")]

    def busiest(self, provider: str) -> tuple[Unit, ProcessIdentity, str]:
        """The worker that runs the most of a provider's tasks, its guardian, and its name."""
        running = (
            "SELECT worker_id FROM tasks WHERE status = 'running' AND provider = $1 GROUP BY 1 ORDER BY count(*) DESC"
        )
        (worker_id, *_) = self.wait_until(f"work at {provider}", lambda: self.ask(running, provider))
        pid = int(worker_id.split("-")[-2])
        for unit in self.actors():
            for worker in workers_of(unit):
                if worker.pid == pid:
                    return unit, worker, worker_id
        raise LookupError(f"no guardian has a worker {worker_id}")

    def kill_every_worker(self) -> None:
        with self.fault("every worker was killed"):
            for unit in self.actors():
                for worker in workers_of(unit):
                    worker.send(SIGKILL)

    @contextmanager
    def fault(self, words: str, *, is_host_wide: bool = False) -> Iterator[None]:
        began_at = time.time()
        yield
        faults = self.installation.record.faults
        faults.append(Fault(len(faults) + 1, words, began_at, time.time(), is_host_wide=is_host_wide))


def results_come_late(stage: Stage) -> None:
    """The work is done, its result is on the way to Postgres, and arrives when another attempt has the task."""
    stage.load(*(stage.wish("probe", {"seconds": 4.0}, provider="probe") for _ in range(8)))
    guardian, _, worker_id = stage.busiest("probe")
    under_way = """
        SELECT task_id FROM tasks
        WHERE status = 'running' AND worker_id = $1 AND started_at < clock_timestamp() - interval '1 s'
        """
    lost = stage.wait_until("work that has begun", lambda: stage.ask(under_way, worker_id))
    with stage.fault(f"nothing passed between {guardian.name} and Postgres"):
        link = stage.installation.links[f"{guardian.name}-postgres"]
        link.freeze()
        elsewhere = "SELECT 1 FROM tasks WHERE task_id = ANY ($1) AND status = 'running' AND worker_id <> $2"
        stage.wait_until("its tasks run elsewhere", lambda: stage.ask(elsewhere, lost, worker_id))
        link.mend()


def a_worker_freezes_with_open_chats(stage: Stage) -> None:
    """Long ones the first time that they are asked for; the others wait for their places."""
    text = " ".join(["The keeper lit the lamp and wrote down the wind of that evening."] * 5)
    long = [stage.wish("summarize", {"content": f"{text} [[pace=1.6 x1]]"}) for _ in range(4)]
    short = [stage.wish("summarize", {"content": text}) for _ in range(4)]
    stage.load(*long)
    stage.wait_until("chats", lambda: stage.installation.fake.books("openrouter")["running"] == 4)
    stage.load(*short)
    guardian, worker, worker_id = stage.busiest("openrouter")
    lost = stage.ask("SELECT task_id FROM tasks WHERE status = 'running' AND worker_id = $1", worker_id)
    in_its_place = """
        SELECT 1 FROM tasks WHERE provider = 'openrouter' AND status = 'completed' AND started_at > (
            SELECT min(at) FROM task_events WHERE task_id = ANY ($1) AND type = 'stall')
          AND started_at < clock_timestamp() - make_interval(secs => $2)
        """
    with stage.fault(f"the worker of {guardian.name} was frozen"):
        worker.send(SIGSTOP)
        # For longer than the judge allows a server to take for noticing that its client has gone.
        long_enough = 2 * SEEN_LATE_SECONDS
        stage.wait_until("another chat in its place", lambda: stage.ask(in_its_place, lost, long_enough))
        worker.send(SIGCONT)


def doorbells_are_lost(stage: Stage) -> None:
    """While no worker is there to hear them."""
    actors = stage.actors()
    with stage.fault("all doorbells were lost while the actors were away"):
        for unit in actors:
            unit.away_until, unit.is_expected_to_end = time.monotonic() + 600, True
            unit.send(SIGTERM)
        stage.wait_until("no actors", lambda: not any(unit.is_running for unit in actors))
        stage.load(*(stage.wish("probe", {}, provider="probe") for _ in range(10)))
        accepted = "SELECT 1 FROM tasks WHERE status = 'queued' AND created_at < clock_timestamp() - interval '0.5 s'"
        stage.wait_until("doorbells", lambda: len(stage.ask(accepted)) >= 10)
        with closing(pika.BlockingConnection(pika.URLParameters(stage.installation.amqp_url))) as connection:
            connection.channel().queue_purge("probe.probe")
        for unit in actors:
            unit.away_until = 0.0
        stage.installation.keep()


def more_is_asked_for_than_may_run(stage: Stage) -> None:
    """By two workers at once, who have places enough for all of it."""
    text = " ".join(["The keeper lit the lamp and wrote down the wind of that evening."] * 5)
    stage.load(*(stage.wish("summarize", {"content": f"{text} [[pace=0.5 x1]]"}) for _ in range(14)))


def workers_die_with_open_orders(stage: Stage) -> None:
    payload = {"action": "txt2img", "prompt": "a boat at dawn [[seconds=4]]", "params": {"num_images": 1}}
    stage.load(*(stage.wish("media", payload, provider="leonardo") for _ in range(6)))
    stage.wait_until("orders", lambda: stage.installation.fake.books("leonardo")["running"] >= 3)
    stage.kill_every_worker()


def clients_come_back_to_their_streams(stage: Stage) -> None:
    wishes = [stage.wish("probe", {"seconds": 3.0, "steps": 12}, provider="probe") for _ in range(16)]
    for wish in wishes:
        wish.is_followed = True
    (before,) = stage.ask(EVENTS)
    stage.load(*wishes)
    for each in (3, 4, 5):  # a submit, a claim, and one report more before each cut
        stage.wait_until("enough to tell", partial(stage.has_events, before + each * len(wishes)))
        with stage.fault("every client of the api was cut off"):
            stage.installation.links["client-api"].reset()


def many_press_run_at_once(stage: Stage) -> None:
    asyncio.run(press_run(stage.installation.api_url, stage.installation.record, stage.dice))


def loops_are_stopped(stage: Stage) -> None:
    """While workers have their first items, of several: the second is not to be."""
    asyncio.run(stop_loops(stage.installation.api_url, stage.installation.record, stage.dice))


def two_make_tasks_of_a_list(stage: Stage) -> None:
    expand_twice(stage.installation.api_url, stage.installation.database_url)


def workflows_run(stage: Stage) -> None:
    submit_lists(stage.installation.api_url, stage.installation.database_url)


def an_endpoint_is_told(stage: Stage) -> None:
    tell_an_endpoint(stage.installation)


def a_schedule_is_due_again(stage: Stage) -> None:
    let_times_come_again(stage.installation)


def summaries_are_made(stage: Stage) -> None:
    stage.load(*(stage.wish("summarize", {"content": "The keeper lit the lamp."}) for _ in range(4)))


def workers_die_at_work(stage: Stage) -> None:
    stage.load(*(stage.wish("probe", {"seconds": 3.0}, provider="probe") for _ in range(6)))
    stage.busiest("probe")
    stage.kill_every_worker()


def agents_leave_others_behind(stage: Stage) -> None:
    """They end by themselves, and who is left takes no notice of a TERM."""
    params = {"do": "leave", "children": ["stubborn", "daemon"]}
    stage.load(*(stage.wish("agent", {"subagent_type": "unruly", "params": params}) for _ in range(2)))


def what_has_completed_is_asked_for_again(stage: Stage) -> None:
    revive_what_completed(stage.installation.api_url, stage.installation.database_url)


def two_people_decide(stage: Stage) -> None:
    decide_twice(stage.installation.api_url, stage.installation.database_url)


def a_schedule_is_still_at_work(stage: Stage) -> None:
    let_a_time_be_skipped(stage.installation)


def workers_die_between_steps(stage: Stage) -> None:
    stage.installation.record.books_of_steps = stage.installation.books_of_steps
    stage.load(*(stage.wish("walk", {"steps": 5, "seconds": 1.5}, provider="walk") for _ in range(4)))
    stage.wait_until("finished steps", lambda: stage.ask("SELECT 1 FROM task_steps"))
    stage.kill_every_worker()


SCENES: dict[str, Callable[[Stage], None]] = {
    "no-fence": results_come_late,
    "slot-freed-before-the-kill": a_worker_freezes_with_open_chats,
    "nobody-asks": doorbells_are_lost,
    "no-limit": more_is_asked_for_than_may_run,
    "order-repeated-after-a-kill": workers_die_with_open_orders,
    "stream-skips-a-seq": clients_come_back_to_their_streams,
    "no-lock-at-start": many_press_run_at_once,
    "next-run-ignores-the-stop": loops_are_stopped,
    "list-expanded-twice": two_make_tasks_of_a_list,
    "workflow-rows-deleted-without-a-turn": workflows_run,
    "delivery-not-written": an_endpoint_is_told,
    "due-time-fired-twice": a_schedule_is_due_again,
    "end-not-remembered": summaries_are_made,
    "dead-workers-keep-theirs": workers_die_at_work,
    "end-without-a-look-at-what-is-left": agents_leave_others_behind,
    "project-forgets-its-start": loops_are_stopped,
    "completed-ones-live-again": what_has_completed_is_asked_for_again,
    "second-decision-heard": two_people_decide,
    "signed-otherwise": an_endpoint_is_told,
    "skipped-time-without-a-row": a_schedule_is_still_at_work,
    "steps-forgotten": workers_die_between_steps,
}
