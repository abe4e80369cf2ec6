"""What a client asks for only ever lowers what the operator has set, and a command brings the files that it needs."""

from pathlib import Path

from windlass.services.actors.agent.limits import for_the_kernel, lowered
from windlass.services.actors.agent.programs import files_of
from windlass.shared.actors.payloads import AgentLimits as WantedLimits
from windlass.shared.toml_tables import AgentLimits


def test_the_smaller_of_both_limits_holds() -> None:
    configured = AgentLimits(memory_mb=100, cpu_seconds=10, file_mb=None, processes=5)
    wanted = WantedLimits(memory_mb=50, cpu_seconds=20, file_mb=7)
    assert lowered(configured, wanted) == AgentLimits(memory_mb=50, cpu_seconds=10, file_mb=7, processes=5)
    assert lowered(configured, None) == configured


def test_what_is_not_limited_is_left_alone_by_the_kernel() -> None:
    nothing = AgentLimits(memory_mb=None, cpu_seconds=None, file_mb=None, processes=None)
    assert set(for_the_kernel(nothing, user=0)) == {"RLIMIT_CORE", "RLIMIT_NOFILE"}
    assert for_the_kernel(AgentLimits(memory_mb=3), user=0)["RLIMIT_DATA"] == (3 * 2**20, 3 * 2**20)
    assert "RLIMIT_AS" not in for_the_kernel(AgentLimits(memory_mb=3), user=0)


def test_a_program_brings_its_installation_and_the_files_it_names(tmp_path: Path) -> None:
    program = tmp_path / "tool" / "bin" / "agent"
    script = tmp_path / "script.py"
    program.parent.mkdir(parents=True)
    program.touch()
    script.touch()
    assert files_of((str(program), str(script), "/nowhere")) == (str(script), str(tmp_path / "tool"))


def test_a_program_that_is_a_link_brings_what_it_points_to(tmp_path: Path) -> None:
    real = tmp_path / "real" / "bin" / "python"
    link = tmp_path / "env" / "bin" / "python"
    for each in (real, link):
        each.parent.mkdir(parents=True)
    real.touch()
    link.symlink_to(real)
    assert files_of((str(link),)) == (str(tmp_path / "env"), str(tmp_path / "real"))


def test_a_program_of_the_system_brings_nothing() -> None:
    assert files_of(("/usr/bin/env", "python3", "/", "/root", "/usr/share")) == ()
