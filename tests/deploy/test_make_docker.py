"""What `make image` and `make compose` ask of Docker: programs of its name write down what they are asked."""

import json
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.manifests import PROJECT

VERSION: str = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
NEEDED = ("Makefile", "pyproject.toml", "deploy/compose.sh", "deploy/env.sh")
THEY_USE = ("cat", "dirname", "grep", "head", "mv", "od", "sed", "tr")
PLUGIN, ELDER = "docker compose", "docker-compose"
UP = ["--file", "deploy/compose.yaml", "up", "--build", "--detach"]

STAND_IN = """#!{python} -IS
import json, os, sys
with open({asked!r}, "a") as asked:
    asked.write(json.dumps({{"words": [{name!r}, *sys.argv[1:]], "sees": dict(os.environ), "in": os.getcwd()}}) + "\\n")
sys.exit(int(sys.argv[1] in {refuses!r}))
"""


@dataclass(frozen=True)
class Machine:
    """A copy of the tree where only these programs are found."""

    tree: Path
    programs: Path
    asked: Path

    def install(self, name: str, *, refuses: Sequence[str] = ()) -> None:
        """Refuses what the real one does not know, as Docker does without its plugin."""
        told = {"python": sys.executable, "asked": str(self.asked), "name": name, "refuses": list(refuses)}
        (self.programs / name).write_text(STAND_IN.format(**told))
        (self.programs / name).chmod(0o755)

    def make(self, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(shutil.which("make")), *words],
            cwd=self.tree,
            env={"PATH": str(self.programs), **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    def builds(self) -> list[dict[str, Any]]:
        """What was asked for, but for questions about versions."""
        asked = [json.loads(line) for line in self.asked.read_text().splitlines()]
        return [each for each in asked if "version" not in each["words"]]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path / "tree", tmp_path / "programs", tmp_path / "asked")
    machine.programs.mkdir()
    for name in THEY_USE:
        (machine.programs / name).symlink_to(str(shutil.which(name)))
    for name in NEEDED:
        (machine.tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / name, machine.tree / name)
    machine.asked.touch()
    return machine


def install_compose(machine: Machine, what: str) -> None:
    if what == ELDER:
        machine.install("docker", refuses=["compose"])
        machine.install("docker-compose")
    else:
        machine.install("docker")


@pytest.mark.parametrize("environment", [{}, {"DOCKER_BUILDKIT": "0"}], ids=str)
def test_the_image_is_built_by_buildkit_whatever_the_caller_s_environment_says(
    machine: Machine, environment: dict[str, str]
) -> None:
    machine.install("docker")
    assert machine.make("image", **environment).returncode == 0
    (build,) = machine.builds()
    assert build["words"] == ["docker", "build", "--file", "deploy/Dockerfile", "--tag", f"windlass:{VERSION}", "."]
    assert build["in"] == str(machine.tree)
    assert build["sees"]["DOCKER_BUILDKIT"] == "1"


def test_an_image_that_was_not_built_is_no_success(machine: Machine) -> None:
    machine.install("docker", refuses=["build"])
    assert machine.make("image").returncode != 0


@pytest.mark.parametrize("what", [PLUGIN, ELDER])
def test_compose_builds_the_same_image_by_buildkit_too(machine: Machine, what: str) -> None:
    install_compose(machine, what)
    run = machine.make("compose", DOCKER_BUILDKIT="0", COMPOSE_DOCKER_CLI_BUILD="0")
    assert run.returncode == 0, run.stderr
    (build,) = machine.builds()
    assert build["words"] == [*what.split(), *UP]
    assert build["sees"]["WINDLASS_VERSION"] == VERSION
    # The elder one builds by itself, without BuildKit, unless it is told to let Docker do it.
    assert (build["sees"]["DOCKER_BUILDKIT"], build["sees"]["COMPOSE_DOCKER_CLI_BUILD"]) == ("1", "1")
    assert "windlass starts at " in run.stdout


@pytest.mark.parametrize("installed", [(), ("docker",)], ids=str)
def test_where_there_is_no_compose_one_sentence_says_what_to_install(
    machine: Machine, installed: Sequence[str]
) -> None:
    for name in installed:
        machine.install(name, refuses=["compose"])
    run = machine.make("compose")
    assert run.returncode != 0
    (said,) = [line for line in run.stderr.splitlines() if not line.startswith("make: ")]
    assert said.startswith(
        "windlass: there is neither `docker compose` nor docker-compose: install docker-compose-plugin"
    )
    assert run.stdout == "", "nothing starts, and nobody is told where"
