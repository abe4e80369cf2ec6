"""Which processes of actors `windlass up` starts, and what each of them serves."""

from windlass.services.laptop.installation import actor_services, names_of_everyone
from windlass.shared.settings import Settings


def test_agents_have_a_process_of_their_own() -> None:
    services = actor_services(Settings())
    assert set(services) == {"actors", "agents"}
    assert services["agents"] == ["agent.local"]
    assert set(services["actors"]) == {*Settings().all_queues(), "own"} - {"agent.local"}


def test_several_processes_of_actors_share_the_other_queues() -> None:
    services = actor_services(Settings(actor_processes=2))
    assert list(services) == ["actors-1", "actors-2", "agents"]
    assert services["actors-1"] == services["actors-2"]


def test_who_names_the_queues_gets_those_alone() -> None:
    assert actor_services(Settings(queues=("probe.probe",))) == {"actors": ["probe.probe"]}
    assert actor_services(Settings(queues=("agent.local",))) == {"agents": ["agent.local"]}


def test_everyone_has_a_name_in_the_log() -> None:
    assert "agents" in names_of_everyone(Settings())
