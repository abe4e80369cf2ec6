"""docs/adding_an_actor.md and the beginning of the README, followed to the letter: from a clone and an empty directory
beside it, in environments that are made and installed into as the pages say."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import a_database, a_virtual_host
from tests.support.installation import PROJECT
from tests.support.pages import COMMANDS, files_of, page
from tests.support.servers.private_servers import Servers
from tests.support.up import READY, WindlassUp
from tests.support.waiting import wait_until

PAGE = page("adding_an_actor.md")
CHECKED = re.compile(r"^windlass actors check\n```.*?^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INSTALL, UP, IN_PYTHON, IN_THE_SHELL, KILL, UP_WITH_CHILDREN, CHILDREN, FAN_OUT, CHECK, PYTEST = COMMANDS.findall(PAGE)
README = page("../README.md")
*README_INSTALL, README_UP, _, README_OPEN, README_CALL = "".join(COMMANDS.findall(README)[:2]).splitlines()
SECONDS = "20 if prompt.endswith('polished') else 0.2"
FILES = {
    **files_of("adding_an_actor.md"),
    **{name: file.replace("sleep(20)", f"sleep({SECONDS})") for name, file in files_of("../README.md").items()},
}
"""Those of both pages; the README's model takes less of its time for a draft here."""

VERSION = re.compile(r"version [0-9a-f]{12}")
TRIES = 5
"""The page's step takes two seconds, which are over before a busy machine has killed its worker."""


class Project:
    """A clone, an empty directory beside it, and a shell in which Windlass is installed there as the page says."""

    def __init__(self, place: Path) -> None:
        self.clone = place / "windlass"
        a_clone_in(self.clone)
        self.directory = place / "project"
        self.directory.mkdir()
        self.environment = self.directory / ".venv"
        self.install(INSTALL, self.directory)
        self.url = ""

    def install(self, commands: str, directory: Path) -> None:
        """What the page says, without the internet: pip builds it with what the tests have, and what it needs is the
        tests' own, too. It is found after what was installed, and a path file that is read so leads to no other."""
        (made,) = re.findall(r"^\. (\S+)/bin/activate", commands, re.MULTILINE)
        needed = sysconfig.get_path("purelib")
        offline = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0", "PYTHONPATH": needed}
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        run(["bash", "-e", "-c", commands], directory, {**os.environ, **offline, "PATH": path})
        (site,) = (directory / made / "lib").glob("python*/site-packages")
        (site / "what_it_needs.pth").write_text(f"{needed}\n")

    def variables(self) -> dict[str, str]:
        """Nothing of ours, but for the path to what was installed, and not the plug-ins of the tests' own pytest."""
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "WINDLASS", "VIRTUAL"))
        }
        path = f"{self.environment / 'bin'}:{kept['PATH']}"
        return {**kept, "PATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}

    def write(self, *names: str) -> None:
        for name in names:
            (self.directory / name).write_text(FILES[name])

    def type_in(self, commands: str) -> str:
        """As the page has them, but for the port, which any test may have."""
        script = commands.replace("http://127.0.0.1:8800", self.url)
        return run(["sh", "-e", "-c", script], self.directory, self.variables())


def a_clone_in(directory: Path) -> None:
    """The files that are ours, as they are now."""
    listed = run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], PROJECT, os.environ)
    for name in filter(None, listed.split("\0")):
        if (PROJECT / name).exists() or (PROJECT / name).is_symlink():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(PROJECT / name, directory / name, follow_symlinks=False)


def run(command: list[str], directory: Path, variables: Mapping[str, str]) -> str:
    done = subprocess.run(
        command, cwd=directory, env=variables, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("actors"))


@pytest.fixture(scope="module")
def up(project: Project, servers: Servers, management: httpx.Client) -> Iterator[WindlassUp]:
    """What both pages say, but for the servers, which are there already, and for the work that comes with Windlass."""
    project.write("our_actors.py", "try_it.py", "book.py", "fan_out.py", "haiku.py")
    assert UP_WITH_CHILDREN.startswith(UP.strip())
    command, *arguments = shlex.split(UP_WITH_CHILDREN)
    arguments += shlex.split(README_UP, comments=True)[2:]
    program = str(project.environment / "bin" / command)
    with a_database(servers, "template1") as database_url, a_virtual_host(servers, management) as amqp_url:
        up = WindlassUp(project.directory / ".windlass", program, *arguments, cwd=project.directory)
        up.in_environment(project.variables()).with_settings(
            WINDLASS_DATABASE_URL=database_url,
            WINDLASS_AMQP_URL=amqp_url,
            WINDLASS_QUEUES="own",
            WINDLASS_FAKE_PROVIDERS_URL="http://127.0.0.1:9",
        )
        try:
            up.start()
            ready = READY.search(up.output)
            assert ready
            project.url = ready[1]
            yield up
        finally:
            up.make_sure_that_it_has_stopped()
            print(up.log)


def test_what_the_page_installs_is_the_package_and_nothing_of_a_source_tree(project: Project) -> None:
    (metadata,) = project.environment.rglob("windlass-*.dist-info/METADATA")
    assert "Provides-Extra: server" in metadata.read_text()
    where = project.type_in("python -c 'import windlass; print(windlass.__file__)'")
    assert Path(where.strip()).is_relative_to(project.environment)


def test_what_the_readme_installs_is_the_clone(project: Project) -> None:
    packages, *install = README_INSTALL
    assert shlex.split(packages, comments=True) == ["make", "packages"]
    project.install("\n".join(install), project.clone)
    program = ". .venv/bin/activate; windlass --version; python -c 'import windlass; print(windlass.__file__)'"
    version, where = run(["sh", "-e", "-c", program], project.clone, project.variables()).splitlines()
    assert version
    assert Path(where).is_relative_to(project.clone)


def test_every_file_of_the_page_is_used() -> None:
    ours = {"our_actors.py", "try_it.py", "book.py", "fan_out.py", "our_app.py", "windlass.toml", "test_our_actors.py"}
    assert FILES.keys() == {*ours, "haiku.py"}


def test_the_readme_does_what_it_says(project: Project, up: WindlassUp) -> None:
    """The page's button is this request."""
    assert README_OPEN == "windlass open"
    assert README_CALL in README.splitlines()[:45], "a function of your own comes first"
    assert "given the draft" in README
    with up.client() as client, ThreadPoolExecutor(1) as terminal:
        watched = terminal.submit(project.type_in, README_CALL)
        task = wait_until("it is being polished", lambda: polished(client))
        (project.directory / "haiku.py").write_text(FILES["haiku.py"].replace(SECONDS, "0.2"))
        client.post(f"/api/v1/tasks/{task['task_id']}/kill-worker", json={}).raise_for_status()
        assert "A haiku about the sea: still water, polished: still water" in watched.result(120)
        task = client.get(f"/api/v1/tasks/{task['task_id']}").raise_for_status().json()
    assert (task["status"], task["attempt"]) == ("completed", 2)
    assert [(step["name"], step["attempt"]) for step in task["steps"]] == [("draft", 1), ("polish", 2)]


def polished(client: httpx.Client) -> dict[str, Any] | None:
    """The one haiku, if its draft is there and it is still worked on."""
    listed = client.get("/api/v1/tasks", params={"actor": "haiku", "status": "running"}).raise_for_status().json()
    for item in listed["items"]:
        task: dict[str, Any] = client.get(f"/api/v1/tasks/{item['task_id']}").raise_for_status().json()
        return task if (task["progress"]["message"]) == "Polishing" else None
    return None


@pytest.mark.usefixtures("up")
def test_it_is_run_from_python(project: Project) -> None:
    lines = project.type_in(IN_PYTHON).splitlines()
    assert lines == ["GOOD MORNING (DRAFT, FR) (POLISH, FR)", "{'words': 3}", "queued", "queued"]


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page calls curl, which is not installed")
def test_its_worker_is_killed_and_it_finishes_once_and_no_step_twice(project: Project, up: WindlassUp) -> None:
    for _ in range(TRIES):
        told = project.type_in(f"{IN_THE_SHELL}{KILL}echo TASK=$TASK")
        if told.splitlines().count("polish") > 1:
            break
    assert "good morning (draft, de) (polish, de)" in told
    assert '"result":"good morning (draft, it) (polish, it)"' in told
    assert told.splitlines()[-4:-1] == ["draft", "polish", "polish"]
    task_id = told.splitlines()[-1].removeprefix("TASK=")
    with up.client() as client:
        task = client.get(f"/api/v1/tasks/{task_id}").json()
        events: list[dict[str, Any]] = client.get(f"/api/v1/tasks/{task_id}/events").json()["items"]
    assert (task["status"], task["attempt"]) == ("completed", 2)
    assert [(step["name"], step["attempt"]) for step in task["steps"]] == [("draft", 1), ("polish", 2)]
    assert [event["type"] for event in events].count("complete") == 1
    assert [event["data"]["error"]["type"] for event in events if event["type"] == "stall"] == ["WorkerLost"]


def test_children_are_joined(project: Project, up: WindlassUp) -> None:
    """By an actor that submits them, and by a workflow that a client submits."""
    joined = project.type_in(f"{CHILDREN}echo JOINED=$JOINED").splitlines()[-1].removeprefix("JOINED=")
    with up.client() as client:
        task = client.get(f"/api/v1/tasks/{joined}").raise_for_status().json()
    assert (task["status"], task["result"], len(task["depends_on"])) == ("completed", "[The sea] [The shore]", 2)
    (shown,) = re.findall(r"^It prints `(.*)`\.$", PAGE, re.MULTILINE)
    assert project.type_in(FAN_OUT).strip() == shown


def test_the_toml_is_checked_without_a_server(project: Project) -> None:
    project.write("our_actors.py", "our_app.py", "windlass.toml")
    (shown,) = CHECKED.findall(PAGE)
    lines = project.type_in(CHECK).splitlines()
    assert set(VERSION.sub("version …", shown).splitlines()) <= {VERSION.sub("version …", line) for line in lines}


def test_its_tests_pass(project: Project) -> None:
    project.write("our_actors.py", "test_our_actors.py")
    offline = re.sub(r"^pytest", "python -m pytest -q -p no:cacheprovider", PYTEST, flags=re.MULTILINE)
    assert "3 passed" in project.type_in(f"export PIP_NO_INDEX=1\n{offline}")


def test_what_the_page_says_of_middleware_is_what_is_refused() -> None:
    from windlass.services.actors.worker.guests import REFUSED  # noqa: PLC0415 - of a worker alone

    table = PAGE.partition("| of Dramatiq's | because |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`([A-Z]\w+)`", table)) == REFUSED.keys()
