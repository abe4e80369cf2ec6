"""Installed, Windlass claims one name, whatever the project that uses it calls its own packages."""

import os
import subprocess
import sysconfig
import venv
from importlib.metadata import distribution, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.deploy.manifests import PROJECT
from tests.deploy.wheels import a_project_with_our_names

SOURCES = ("services", "shared", "windlass")
OF_THE_CLIENT = {"httpx", "httpx-sse", "msgspec"}
EVERY_PROCESS = (
    "api.main", "dispatcher.main", "actors.guardian", "actors.main", "janitor.main", "cli.main", "laptop.up",
    "admin.migrate", "admin.first_key", "admin.after_restore", "fake_providers.main",
)  # fmt: skip


def test_it_holds_every_file_that_the_processes_read(installed: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", *SOURCES], cwd=PROJECT, capture_output=True, text=True, check=False
    ).stdout.split()
    expected = [name for name in listed if not (PROJECT / name).is_symlink()] or [
        str(path.relative_to(PROJECT))
        for source in SOURCES
        for path in (PROJECT / source).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]
    inside = [name if name.startswith("windlass/") else f"windlass/{name}" for name in expected]
    assert [name for name in inside if not (installed / name).is_file()] == []
    assert [name for name in inside if name.endswith(".sql")]


def test_it_claims_one_name(installed: Path) -> None:
    names = {path.name for path in installed.iterdir() if not path.name.endswith(".dist-info")}
    assert names == {"windlass"}


def an_environment(place: Path) -> Path:
    """A Python without any package, beside a project; where its packages would be."""
    venv.create(place / "environment", with_pip=False, symlinks=True)
    a_project_with_our_names(place / "project")
    (site,) = (place / "environment" / "lib").glob("python*/site-packages")
    return site


@pytest.fixture(scope="module")
def fresh(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with the wheel, and what it needs from the environment of the tests, but nothing of our source tree."""
    place = tmp_path_factory.mktemp("fresh")
    # In this order; a path file that is read so does not lead on to others, such as the one of an editable install.
    (an_environment(place) / "wheel.pth").write_text(f"{installed}\n{sysconfig.get_path('purelib')}\n")
    return place


def run_in_the_project(fresh: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        [fresh / "environment" / "bin" / "python", *arguments],
        cwd=fresh / "project",
        env={**environment, "PYTHONPATH": "."},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_every_process_loads_beside_packages_of_the_same_names(fresh: Path, installed: Path) -> None:
    imports = "\n".join(f"import windlass.services.{name}" for name in EVERY_PROCESS)
    done = run_in_the_project(fresh, "-c", f"{imports}\nprint(windlass.__file__)")
    assert done.stderr == ""
    assert Path(done.stdout.strip()) == installed / "windlass" / "__init__.py"


def test_the_command_runs_there(fresh: Path) -> None:
    done = run_in_the_project(fresh, "-m", "windlass", "--version")
    assert (done.returncode, done.stdout.split()[0]) == (0, "windlass")


def test_the_client_needs_httpx_and_msgspec_and_no_more() -> None:
    asked = [Requirement(each) for each in requires("windlass") or []]
    assert {each.name for each in asked if each.marker is None} == OF_THE_CLIENT
    server = {each.name for each in asked if each.marker and each.marker.evaluate({"extra": "server"})}
    assert {"litestar", "dramatiq", "asyncpg"} <= server


def test_whoever_has_the_client_alone_is_told_what_the_command_needs(installed: Path, tmp_path: Path) -> None:
    site = an_environment(tmp_path)
    for name in closure(OF_THE_CLIENT):
        for top in {file.parts[0] for file in distribution(name).files or () if file.parts[0] != ".."}:
            (site / top).symlink_to(distribution(name).locate_file(top))  # type: ignore[arg-type] # a path here
    (site / "wheel.pth").write_text(f"{installed}\n")
    client = run_in_the_project(tmp_path, "-c", "from windlass import Client; print(Client.__name__)")
    assert (client.stdout.strip(), client.stderr) == ("Client", "")
    command = run_in_the_project(tmp_path, "-m", "windlass", "up")
    assert command.returncode == 1
    assert "pip install '.[server]' in a clone" in command.stderr
    assert "Traceback" not in command.stderr


def closure(names: set[str]) -> set[str]:
    """With everything that they need themselves."""
    asked = {Requirement(each) for name in names for each in requires(name) or []}
    needed = {each.name for each in asked if each.marker is None or each.marker.evaluate({"extra": ""})}
    return names if needed <= names else closure(names | needed)
