"""What happens to a worker with somebody at places of its pipeline, and what must have become of them."""

import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from tests.chaos.pipeline.drill import BOUND_SECONDS, GRACE_SECONDS, SHORT_GRACE_SECONDS, Drill, Looks, Round
from tests.support.failpoints.catalogue import OF_THE_LONER, PIPELINE, STOP_HEARD
from tests.support.servers.databases import ask
from tests.support.waiting import wait_until
from windlass.shared.process.procfs import ProcessIdentity

WAITED_FOR = ("end-handed-over", "claim-answered", "claim-asked", "alone-claim-answered")
LEAVES_WITHIN_SECONDS = 1.5
"""Who has nothing to wait for, with time to spare."""
SILENT_SECONDS = 1.5
LONGEST_PAUSE_SECONDS = SHORT_GRACE_SECONDS / 3
CLAIM_ASKED, ENDS = "claim-asked", ("end-handed-over", "end-written")
PAUSED = ("march", "walk", "errand")
SILENT = """SELECT 1 FROM workers WHERE worker_id = ANY ($1::text[])
            HAVING max(heartbeat_at) < clock_timestamp() - make_interval(secs => $2)"""

ALL_AT_ONCE = tuple(
    tuple(place for place in PIPELINE if place not in left_out)
    for left_out in ({"claim-answered", "end-written"}, {"claim-asked", "end-handed-over"})
)
"""Each place at which an attempt stands can be taken by one at the same time; of those where a call stands, either that
before it or that after it."""
WITHOUT_ENDS = tuple(place for place in ALL_AT_ONCE[0] if place not in ENDS)
"""The same, and whoever ends has its end written."""


class TooLate(Exception):
    """The machine was too busy for what was to be shown."""


def told_to_stop(drill: Drill, places: Sequence[str]) -> Round:
    """SIGTERM, to the guardian; then there is another worker."""
    drill.have_a_worker(GRACE_SECONDS)
    under_way, leaving = drill.bring(places), drill.workers_at(places)
    with drill.until_it_says("stopping: told to stop", times=len(leaving)):
        drill.windlass.actors.send_signal(signal.SIGTERM)
    if last := next((place for place in WAITED_FOR if place in places), None):
        drill.failpoints.let_all_go(but=last)
        with suppress(AssertionError):
            wait_until("it leaves", lambda: drill.windlass.actors.poll() is not None, seconds=LEAVES_WITHIN_SECONDS)
        assert drill.windlass.actors.poll() is None, f"it waits for somebody at {last}"
    drill.failpoints.let_all_go()
    assert drill.windlass.actors.wait(BOUND_SECONDS) == 0
    assert not any(drill.judge.held_by(each["worker_id"]) for each in leaving), "all was handed back"
    drill.start_a_worker()
    drill.finish(under_way, interrupts=1)
    return under_way


def drained(drill: Drill, places: Sequence[str]) -> Round:
    """By an operator; its guardian starts the next one."""
    drill.have_a_worker(GRACE_SECONDS)
    under_way, leaving = drill.bring(places), drill.worker()["worker_id"]
    with drill.until_it_says("stopping: drained"):
        drill.client.http.post(f"/api/v1/workers/{leaving}/drain", json={"reason": "a drill"}).raise_for_status()
    drill.failpoints.let_all_go()
    drill.wait_until_it_has_left(leaving)
    assert drill.judge.held_by(leaving) == set(), "all was handed back"
    drill.finish(under_way, interrupts=1)
    return under_way


def beside_a_deaf_thread(drill: Drill, places: Sequence[str]) -> Round:
    """Somebody is cancelled and does not stop: its process is condemned, and the others are saved."""
    drill.have_a_worker(SHORT_GRACE_SECONDS)
    under_way, looks = drill.bring(places, culprit=("deaf", {})), Looks()
    assert under_way.culprit is not None
    with drill.until_it_says("stopping: condemned", looks):
        drill.client.cancel(under_way.culprit)
    _save_the_others(drill, under_way, looks, culprit_is="cancelled")
    return under_way


def beside_a_stuck_loop(drill: Drill, places: Sequence[str]) -> Round:
    """Somebody holds up the loop; the others on it cannot go on, and are handed back in their stead. Where nobody else
    can be claimed and ends are written, none of these ends takes anybody in: he would have to go as well."""
    drill.have_a_worker(SHORT_GRACE_SECONDS)
    stuck, no_more = drill.directory / "stuck", drill.directory / "stuck-no-more"
    for each in (stuck, no_more):
        each.unlink(missing_ok=True)
    under_way, looks = drill.bring(places, culprit=("sticks", {"until": stuck.name})), Looks()
    with drill.until_it_says("stopping: condemned", looks):
        stuck.touch()
    if CLAIM_ASKED in places and STOP_HEARD in places and not set(places) & set(ENDS):
        wait_until("they are handed back", lambda: not drill.judge.running(under_way.at_work_on_the_loop))
        assert not drill.judge.claimed(under_way.waiting), "nobody was claimed who has to be handed back"
    no_more.touch()
    _save_the_others(drill, under_way, looks, culprit_is="dead")
    return under_way


def _save_the_others(drill: Drill, under_way: Round, looks: Looks, *, culprit_is: str) -> None:
    leaving = drill.client.get(str(under_way.culprit))["worker_id"]
    drill.failpoints.let_all_go()
    drill.wait_until_it_has_left(leaving, looks)
    left = drill.judge.held_by(leaving) - {str(under_way.culprit)}
    is_too_late = looks.longest_pause > LONGEST_PAUSE_SECONDS
    assert not left or is_too_late, "all others were handed back"
    drill.finish(under_way, interrupts=1, stalls=int(is_too_late))
    assert drill.client.finished(str(under_way.culprit), seconds=BOUND_SECONDS)["status"] == culprit_is
    assert len(drill.judge.starts()[str(under_way.culprit), 1]) == 1
    if is_too_late:
        raise TooLate


def paused(drill: Drill, places: Sequence[str]) -> Round:
    """Whoever was claimed comes to its end, and nobody else begins before it is resumed."""
    under_way = drill.bring([place for place in places if place != STOP_HEARD])
    _pause(drill, is_paused=True)
    claimed = drill.judge.claimed(under_way.task_ids)
    (drill.directory / under_way.mark).touch()
    drill.failpoints.let_all_go()
    wait_until("whoever was claimed has completed", lambda: drill.judge.have_completed(sorted(claimed)))
    late = drill.submit([("march", {}), ("walk", {})])
    (bystander,) = drill.submit([("bystander", {})])
    assert drill.client.finished(bystander, seconds=BOUND_SECONDS)["status"] == "completed", "others go on"
    assert drill.judge.claimed([*under_way.task_ids, *late]) == claimed, "nobody was claimed meanwhile"
    under_way.waiting += late
    _pause(drill, is_paused=False)
    drill.finish(under_way, interrupts=0)
    return under_way


def frozen(drill: Drill, places: Sequence[str]) -> Round:
    """For less than its lease: it goes on as if nothing had happened."""
    under_way = drill.bring([place for place in places if place != STOP_HEARD])
    workers = drill.workers_at(places)
    processes = [process for each in workers if (process := ProcessIdentity.of(each["pid"]))]
    assert len(processes) == len(workers)
    for process in processes:
        process.send(signal.SIGSTOP)
    (drill.directory / under_way.mark).touch()
    drill.failpoints.let_all_go()
    silent = [each["worker_id"] for each in workers], SILENT_SECONDS
    wait_until("nothing has been heard of them for some time", lambda: ask(drill.url, SILENT, *silent))
    for process in processes:
        process.send(signal.SIGCONT)
    drill.finish(under_way, interrupts=0)
    assert all(process.is_running() for process in processes), "its guardian has let it live"
    return under_way


def killed(drill: Drill, places: Sequence[str]) -> Round:
    """With -9, by whoever comes to the place: the others run again when its guardian has proven it dead. Those beside a
    process that runs alone notice nothing."""
    (place,) = places
    drill.have_a_worker(GRACE_SECONDS)
    under_way = drill.bring(())
    drill.failpoints.kill(place)
    under_way.at_places = drill.submit([("errand", {}), ("march", {}), ("walk", {})])
    if place in OF_THE_LONER:
        under_way.at_places += drill.submit_suspects([("march", {}), ("walk", {})])
    if place == STOP_HEARD:
        drill.windlass.actors.send_signal(signal.SIGTERM)
    drill.failpoints.wait_until_spent(place)
    if place == STOP_HEARD:
        assert drill.windlass.actors.wait(BOUND_SECONDS) == 0
        drill.start_a_worker()
    beside = []
    if place in OF_THE_LONER:
        beside = [*under_way.at_work, *under_way.at_work_on_the_loop, *under_way.waiting]
        (drill.directory / under_way.mark).touch()
    drill.finish(under_way, interrupts=0, stalls=1)
    assert not drill.judge.faults(beside, interrupts=0), "neither takes the other along"
    # A guardian whose workers die again and again lets the next one wait: each time there is a new one.
    drill.exchange_the_worker(GRACE_SECONDS)
    return under_way


def _pause(drill: Drill, *, is_paused: bool) -> None:
    for provider in PAUSED:
        drill.client.change_provider(provider, paused=is_paused)


DISTURBANCES: Mapping[str, Callable[[Drill, Sequence[str]], Round]] = {
    "paused": paused,
    "frozen": frozen,
    "drained": drained,
    "told to stop": told_to_stop,
    "condemned for a deaf thread": beside_a_deaf_thread,
    "condemned for a stuck loop": beside_a_stuck_loop,
    "killed": killed,
}


def play_round(drill: Drill, what: str, places: Sequence[str]) -> Round:
    """Fails unless all went well; once more when the machine was too busy."""
    while True:
        drill.failpoints.let_all_go()
        try:
            return DISTURBANCES[what](drill, places)
        except TooLate:
            continue
