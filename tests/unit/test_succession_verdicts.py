"""When a worker is proven dead: worlds of processes by the hundred, in which orphans fall as the kernel lets them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.services.actors.succession.neighbours import Neighbour
from windlass.services.actors.succession.verdict import Finding, Verdict, judge
from windlass.services.actors.succession.whereabouts import Whereabouts, container, sees_everybody
from windlass.shared.process.procfs import Mount, ProcessIdentity

DEAD, ANOTHER = "worker-dead", "worker-of-another"
CGROUP = "0::/ours\n"


def at(pid: int, started: int) -> ProcessIdentity:
    return ProcessIdentity(pid, started)


HERE = Whereabouts(
    hostname="pod-1",
    boot_id="boot-1",
    pid_namespace="pid:[1]",
    time_namespace="time:[1]",
    cgroup_namespace="cgroup:[1]",
    cgroup=CGROUP,
    container="pod a container actors",
    container_run=7,
    worker=at(900, 9000),
    guardian=at(899, 8999),
    ancestors=(at(1, 1),),
    group=None,
    niceness=0,
    oom_score=0,
)
GONE = replace(HERE, worker=at(20, 2000), guardian=at(19, 1999))
US = (
    Neighbour(at(1, 1), 0, 1, 0, 0, CGROUP, ""),
    Neighbour(at(899, 8999), 1, 899, 0, 0, CGROUP, None),
    Neighbour(at(900, 9000), 899, 899, 0, 0, CGROUP, None),
)


def verdict(dead: Whereabouts | None = GONE, *more: Neighbour, others: tuple[Whereabouts, ...] = ()) -> Verdict:
    return judge(DEAD, dead, HERE, [*US, *more], others)


@dataclass
class Simulated:
    """A process as the kernel has it: parents that die give their children to the next one above that takes orphans."""

    itself: ProcessIdentity
    parent: "Simulated | None"
    lives: bool
    takes_orphans: bool = False
    of_the_dead: bool = False
    mark: str | None = ""
    niceness: int = 0
    oom_score: int = 0
    cgroup: str = CGROUP

    def parent_now(self) -> int:
        above = self.parent
        is_first = True
        while above is not None and not (above.lives and (is_first or above.takes_orphans or above.itself.pid == 1)):
            above, is_first = above.parent, False
        return 0 if above is None else above.itself.pid


@st.composite
def worlds(draw: st.DrawFn, kinds: Callable[[], st.SearchStrategy[dict[str, Any]]]) -> list[Simulated]:
    """Some processes above the guardian; guardian and worker, both dead; and what came of them and of everybody else.
    `kinds` are what remains of the dead may look like."""
    tick = 1
    everybody = [Simulated(at(1, tick), None, lives=True)]

    def add(parent: Simulated, **traits: Any) -> Simulated:
        nonlocal tick
        tick += draw(st.integers(0, 2))
        everybody.append(Simulated(at(len(everybody) + 1, tick), parent, **traits))
        return everybody[-1]

    above = everybody[0]
    for _ in range(draw(st.integers(0, 3))):
        above = add(above, lives=draw(st.booleans()), takes_orphans=draw(st.booleans()))
    guardian = add(above, lives=False, takes_orphans=True, of_the_dead=True)
    worker = add(guardian, lives=False, of_the_dead=True)
    for _ in range(draw(st.integers(0, 8))):
        parent = draw(st.sampled_from(everybody))
        if parent.of_the_dead and parent is not guardian:
            add(parent, of_the_dead=True, takes_orphans=draw(st.booleans()), **draw(kinds()))
        elif parent is not guardian:
            mark = draw(st.sampled_from(["", ANOTHER]))
            add(parent, lives=draw(st.booleans()), takes_orphans=draw(st.booleans()), mark=mark)
    everybody[0].of_the_dead = False
    return [guardian, worker, *everybody]


def judged(world: list[Simulated]) -> Verdict:
    guardian, worker, *everybody = world
    above, ancestors = guardian.parent, []
    while above is not None:
        ancestors.append(above.itself)
        above = above.parent
    dead = replace(GONE, worker=worker.itself, guardian=guardian.itself, ancestors=tuple(ancestors))
    around = [
        Neighbour(
            each.itself, each.parent_now(), each.itself.pid, each.niceness, each.oom_score, each.cgroup, each.mark
        )
        for each in everybody
        if each.lives
    ]
    return judge(DEAD, dead, HERE, [*around, *US[1:]], ())


def remains() -> st.SearchStrategy[dict[str, Any]]:
    """Marked, unreadable, or with another environment but from below a keeper."""
    kept = [{"mark": "", "niceness": 5}, {"mark": "", "niceness": 12}, {"mark": "", "oom_score": 500}]
    looks = st.sampled_from([{"mark": DEAD}, {"mark": None}, *kept])
    return st.builds(lambda look, lives: {**look, "lives": lives}, looks, st.booleans())


def ended() -> st.SearchStrategy[dict[str, Any]]:
    return st.just({"lives": False})


@given(worlds(remains))
def test_it_is_dead_exactly_when_nothing_of_it_lives_wherever_orphans_fell(world: list[Simulated]) -> None:
    alive = [each for each in world if each.of_the_dead and each.lives]
    assert judged(world).finding is (Finding.NOT_YET if alive else Finding.DEAD)


@given(worlds(ended))
def test_whoever_else_lives_does_not_hold_up_a_proof(world: list[Simulated]) -> None:
    assert judged(world).finding is Finding.DEAD


DIFFERENT: dict[str, tuple[Any, ...]] = {
    "hostname": ("pod-1", "pod-2"),
    "boot_id": ("boot-1", "boot-2"),
    "pid_namespace": ("pid:[1]", "pid:[2]"),
    "time_namespace": ("time:[1]", "time:[2]"),
    "container": (None, "pod a container actors", "pod a container more", "layer /x"),
    "container_run": (None, 6, 7),
}


def test_a_place_proves_something_only_if_it_is_the_same() -> None:
    for values in product(*DIFFERENT.values()):
        dead = replace(GONE, **dict(zip(DIFFERENT, values, strict=True)))
        same_machine = (dead.hostname, dead.boot_id) == (HERE.hostname, HERE.boot_id)
        is_seen = dead.pid_namespace == HERE.pid_namespace
        another_run = dead.container == HERE.container and dead.container_run == 6
        proven = same_machine and (dead.time_namespace == HERE.time_namespace if is_seen else another_run)
        assert verdict(dead).finding is (Finding.DEAD if proven else Finding.UNKNOWN), values


def test_its_guardian_is_its_judge_as_long_as_it_lives() -> None:
    guardian = Neighbour(GONE.guardian, 1, 19, 0, 0, CGROUP, None)
    worker = Neighbour(GONE.worker, 19, 19, 0, 0, CGROUP, None)
    assert verdict(GONE, guardian, worker).finding is Finding.LIVES
    assert verdict(GONE, guardian).finding is Finding.LIVES
    assert verdict(GONE, replace(worker, parent=1, cgroup="0::/another\n")).finding is Finding.NOT_YET


def test_a_number_that_was_given_to_another_process_is_not_taken_for_it() -> None:
    reused = Neighbour(at(GONE.worker.pid, 5000), 1, 20, 0, 0, CGROUP, "")
    assert verdict(GONE, reused).finding is Finding.DEAD


def test_a_worker_that_has_not_said_where_it_was_waits_for_its_lease() -> None:
    assert Whereabouts.read({}) is None
    assert verdict(None).finding is Finding.UNKNOWN
    assert Whereabouts.read(GONE.as_document() | {"more": 1}) is None
    assert Whereabouts.read(GONE.as_document()) == GONE


def test_the_private_processes_of_those_who_are_registered_are_theirs() -> None:
    other = replace(GONE, worker=at(31, 3001), guardian=at(30, 3000))
    private = (
        Neighbour(other.guardian, 1, 30, 0, 0, CGROUP, None),
        Neighbour(other.worker, 30, 30, 0, 0, CGROUP, None),
    )
    keeper = Neighbour(at(32, 3100), 31, 32, 0, 0, CGROUP, None)
    assert verdict(GONE, *private, keeper, others=(GONE, other)).finding is Finding.DEAD
    assert verdict(GONE, *private, keeper, others=(GONE,)).finding is Finding.NOT_YET


def test_who_came_in_from_outside_is_nobody_s() -> None:
    assert verdict(GONE, Neighbour(at(40, 4000), 0, 40, 19, 900, CGROUP, None)).finding is Finding.DEAD


def test_one_that_cannot_be_seen_into_counts_unless_it_was_put_elsewhere() -> None:
    stranger = Neighbour(at(40, 4000), 1, 40, 0, 0, "0::/another\n", None)
    assert verdict(GONE, stranger).finding is Finding.DEAD
    assert verdict(GONE, replace(stranger, cgroup=CGROUP)).finding is Finding.NOT_YET
    assert verdict(replace(GONE, cgroup_namespace="cgroup:[2]"), stranger).finding is Finding.NOT_YET


def test_what_is_in_its_own_process_group_is_its_own() -> None:
    child = Neighbour(at(40, 4000), 1, 19, 0, 0, CGROUP, "")
    assert verdict(replace(GONE, group=19), child).finding is Finding.NOT_YET
    assert verdict(GONE, child).finding is Finding.DEAD, "a group that others are in, too, says nothing"


PROC = Mount("/", "/proc", "proc", ("rw",))


@pytest.mark.parametrize(
    ("mounts", "numbers", "sees"),
    [
        ([PROC], [5], True),
        ([replace(PROC, options=("rw", "hidepid=off"))], [5], True),
        ([replace(PROC, options=("rw", "hidepid=invisible"))], [5], False),
        ([replace(PROC, options=("rw", "hidepid=2"))], [5], False),
        ([PROC, replace(PROC, kind="tmpfs")], [5], False),
        ([], [5], False),
        ([PROC], [4711, 5], False),
        ([PROC], [], False),
    ],
)
def test_a_proc_that_hides_somebody_or_is_another_s_proves_nothing(
    mounts: list[Mount], numbers: list[int], sees: bool
) -> None:
    assert sees_everybody(mounts, numbers, 5) is sees


POD = "/var/lib/kubelet/pods/0a1b2c3d-0000-4000-8000-000000000001"
LAST_WORDS = Mount(f"{POD}/containers/actors/1f2e3d4c", "/dev/termination-log", "ext4", ("rw",))
ROOT = Mount("/", "/", "overlay", ("rw", "lowerdir=/l", "upperdir=/var/lib/docker/overlay2/abc/diff"))


def test_a_container_is_known_by_what_is_its_own_and_stays_when_it_is_started_again() -> None:
    assert container([ROOT, LAST_WORDS], by_an_engine=False) == f"pod {POD.rsplit('/', 1)[1]} container actors"
    another = replace(LAST_WORDS, root=f"{POD}/containers/more/1f2e3d4c")
    assert container([ROOT, LAST_WORDS, another], by_an_engine=False) is None, "whose are we?"
    assert container([ROOT], by_an_engine=True) == "layer /var/lib/docker/overlay2/abc/diff"
    assert container([ROOT], by_an_engine=False) is None, "a machine whose own root is such a layer"
    hostname = Mount("/var/lib/docker/containers/abc/hostname", "/etc/hostname", "ext4", ("rw",))
    assert container([hostname], by_an_engine=True) is None, "who joins another's network has that one's file"


def test_one_that_cannot_be_seen_into_is_its_parent_s() -> None:
    """As the backends of a Postgres that was started after the worker."""
    server = Neighbour(at(40, 4000), 1, 40, 0, 0, CGROUP, "")
    backend = Neighbour(at(41, 4001), 40, 41, 0, 0, CGROUP, None)
    below = Neighbour(at(42, 4002), 41, 42, 0, 0, CGROUP, None)
    assert verdict(GONE, server, backend, below).finding is Finding.DEAD
    for of_the_dead in (replace(server, mark=DEAD), replace(server, niceness=5), replace(server, mark=None)):
        assert verdict(GONE, of_the_dead, backend).finding is Finding.NOT_YET
    assert verdict(GONE, replace(server, itself=at(40, 4005)), backend).finding is Finding.NOT_YET, (
        "its number is reused"
    )
    ancestor = replace(GONE, ancestors=(server.itself, at(1, 1)))
    assert verdict(ancestor, server, backend).finding is Finding.NOT_YET, "it may have fallen there"
