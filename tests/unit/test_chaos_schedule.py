"""The plan of a storm: the same for the same seed, another for another, and nobody is spared."""

from tests.chaos.faults import plan as kinds
from tests.chaos.faults.plan import Place, absence, schedule

PLACES = [
    Place(kinds.PROCESSES, ("api-1", "api-2")),
    Place(kinds.ORCHESTRATORS, ("orchestrator-1", "orchestrator-2")),
    Place(kinds.ACTORS, ("actors-1", "actors-2", "actors-3")),
    Place(kinds.ENDS, ("actors-1", "actors-2", "actors-3")),
    Place(kinds.POSTGRES, ("postgres",)),
    Place(kinds.BROKER, ("rabbitmq",)),
    Place(kinds.LINKS, tuple(f"link-{number}" for number in range(15))),
    Place(kinds.LIMITS, ("leonardo", "openrouter")),
]
ALL = {kind.name for place in PLACES for kind in place.kinds}


def test_the_same_seed_gives_the_same_storm_and_another_one_another() -> None:
    assert schedule(7, 360, 60, PLACES) == schedule(7, 360, 60, PLACES)
    assert schedule(7, 360, 60, PLACES) != schedule(8, 360, 60, PLACES)


def test_every_kind_of_fault_comes_and_every_link_is_harmed() -> None:
    for seed in range(50):
        plan = schedule(seed, 360, 60, PLACES)
        assert {planned.kind for planned in plan} == ALL
        links = [planned.target for planned in plan if planned.target.startswith("link")]
        assert len(set(links)) == 15


def test_they_come_in_order_within_the_time_and_last_as_long_as_their_kind_allows() -> None:
    plan = schedule(3, 100, 40, PLACES)
    by_name = {kind.name: kind for place in PLACES for kind in place.kinds}
    assert [planned.at for planned in plan] == sorted(planned.at for planned in plan)
    assert all(0 < planned.at <= 100 for planned in plan)
    for planned in plan:
        shortest, longest = by_name[planned.kind].seconds
        assert shortest <= planned.seconds <= longest
        assert not by_name[planned.kind].amounts or planned.amount in by_name[planned.kind].amounts


def test_the_absence_begins_early_enough_to_be_over_while_there_is_work() -> None:
    assert absence(7, 360, "orchestrator") == absence(7, 360, "orchestrator")
    assert all(0 < absence(seed, 60, "orchestrator").at <= 30 for seed in range(50))
