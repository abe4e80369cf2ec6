"""`deploy/examples/own_actors`, an image with actors of one's own, followed as far as that goes without an engine."""

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.manifests import DEPLOY, PROJECT, pools
from tests.deploy.test_image import contained, given, instructions, skip_without_namespaces, wait_until_alive
from tests.support.installation import KEY, START_SECONDS, Client, answers
from tests.support.waiting import wait_until
from windlass.services.laptop.ports import free_port
from windlass.shared.settings import Settings

EXAMPLE = DEPLOY / "examples" / "own_actors"
VERSION = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]


def variables() -> dict[str, str]:
    return dict(each.split("=", 1) for each in given("ENV", EXAMPLE))


def copied() -> dict[str, str]:
    """Each file of the example that is in the image, and the directory that it is in."""
    words = [[word for word in rest.split() if not word.startswith("--")] for rest in given("COPY", EXAMPLE)]
    return {name: target for *names, target in words for name in names}


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """What the example copies, where it copies it, as bubblewrap mounts it."""
    (place,) = set(copied().values())
    files = tmp_path_factory.mktemp("image")
    for name in copied():
        shutil.copy(EXAMPLE / name, files)
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(files)], check=True)
    return ("--tmpfs", str(Path(place).parent), "--ro-bind", str(files), place.rstrip("/"))


def test_it_stands_on_our_image_of_this_version_and_changes_nothing_of_how_it_runs() -> None:
    assert given("FROM", EXAMPLE) == [f"windlass:{VERSION}"]
    assert not {"ENTRYPOINT", "CMD", "WORKDIR", "HEALTHCHECK", "STOPSIGNAL", "EXPOSE"} & {
        name for name, _ in instructions(EXAMPLE)
    }
    assert given("USER", EXAMPLE) == ["root", *given("USER")]
    assert instructions(EXAMPLE)[-2] == ("USER", given("USER")[0]), "what comes after it is tried as that user"


def test_packages_go_where_ours_are_and_change_none_of_ours() -> None:
    (install,) = [rest for rest in given("RUN", EXAMPLE) if "pip" in rest]
    pip, _, python = shlex.split(install)[:3]
    building = " ".join(given("RUN"))
    assert f"python -m venv {Path(python).parents[1]}" in building
    assert re.search(r"pip uninstall .*\bpip\b", building), "so there is no other"
    assert pip == "/usr/local/bin/pip", "the one of the image that both stages are built from"
    (constraints,) = re.findall(r"--constraint (\S+)", install)
    assert f"pip freeze >{constraints}" in building
    assert Path(constraints).is_relative_to("/opt/windlass"), "which the last stage copies"


def test_what_it_installs_can_be_had_with_our_constraints(tmp_path: Path) -> None:
    """Without a network: all that the example needs is there."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    (tmp_path / "constraints.txt").write_text(
        "".join(
            f"{line}\n"
            for line in subprocess.run([*pip, "freeze"], capture_output=True, text=True, check=True).stdout.splitlines()
            if "==" in line
        )
    )
    (install,) = [shlex.split(rest) for rest in given("RUN", EXAMPLE) if "pip" in rest]
    places = {
        "/opt/windlass/bin/python": sys.executable,
        "/opt/windlass/constraints.txt": str(tmp_path / "constraints.txt"),
        "/srv/actors/requirements.txt": str(EXAMPLE / "requirements.txt"),
    }
    assert places.keys() <= set(install)
    words = [places.get(word, word) for word in install[1:]]
    done = subprocess.run([*pip, *words, "--no-index", "--dry-run"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Would install" not in done.stdout


def test_single_files_are_where_python_looks_and_nobody_mounts_anything() -> None:
    assert all((EXAMPLE / name).is_file() for name in copied())
    (place,) = {target.rstrip("/") for target in copied().values()}
    assert variables() == {"PYTHONPATH": place}
    mounted = {mount["mountPath"] for pod in pools("dev") for mount in pod.spec["containers"][0]["volumeMounts"]}
    for each in (*mounted, *given("WORKDIR")):
        assert not Path(place).is_relative_to(each)
    names = [f"{name} {rest}" for name, rest in instructions(EXAMPLE)]
    assert f"RUN python -m compileall -q {place}" in names
    assert names.index(f"RUN python -m compileall -q {place}") > max(names.index(n) for n in names if n[:4] == "COPY")


def test_it_fails_to_build_where_the_actors_cannot_be_loaded(
    installed: Path, image: tuple[str, ...], tmp_path: Path
) -> None:
    skip_without_namespaces()
    setting, *command = shlex.split(given("RUN", EXAMPLE)[-1])
    assert command == ["windlass", "actors", "check"]
    name, _, modules = setting.partition("=")
    python_path = f"/mnt:{variables()['PYTHONPATH']}"
    for number, (mounts, code) in enumerate(((image, 0), ((), 1))):
        given_here = {name: modules, "PYTHONPATH": python_path}
        with contained(installed, tmp_path / str(number), "actors", "check", mounts=mounts, **given_here) as check:
            assert check.wait(START_SECONDS) == code


def test_its_actors_are_registered_and_run_and_the_api_has_none_of_their_code(
    installed: Path, image: tuple[str, ...], empty_database_url: str, amqp_url: str, tmp_path: Path
) -> None:
    """As the manifests and compose do it: the same image and settings for who registers and for the pool, and for all
    others the plain image."""
    skip_without_namespaces()
    port = free_port()
    plain = {
        "WINDLASS_DATABASE_URL": empty_database_url,
        "WINDLASS_AMQP_URL": amqp_url,
        "WINDLASS_API_KEY": KEY,
        "WINDLASS_PORT": str(port),
    }
    own = {
        **plain,
        "WINDLASS_CONFIG": str(EXAMPLE / "windlass.toml"),
        "WINDLASS_QUEUES": "own",
        "PYTHONPATH": f"/mnt:{variables()['PYTHONPATH']}",
    }
    with contained(installed, tmp_path / "migrate", "migrate", "--register", mounts=image, **own) as migrate:
        assert migrate.wait(START_SECONDS) == 0
    with ExitStack() as stack:
        for name in ("api", "dispatcher", "janitor", "orchestrator"):
            stack.enter_context(contained(installed, tmp_path / name, name, **plain))
        client = Client(f"http://127.0.0.1:{port}")
        stack.callback(client.close)
        wait_until("the api is ready", lambda: answers(client), seconds=START_SECONDS)
        task = client.submit(actor="translate", payload={"text": "windlass", "to": "de"})
        assert task["status"] == "queued", "a pool at none accepts"
        stack.enter_context(contained(installed, tmp_path / "actors", "worker", mounts=image, **own))
        wait_until_alive(tmp_path / "actors" / "pulse")
        done = client.wait_until(task["task_id"], "completed", seconds=START_SECONDS)
        assert done["result"] == "Polish: Translate into de: windlass"
        assert [each["name"] for each in done["steps"]] == ["draft", "polish"]
        (worker,) = client.workers()
        assert (worker["queues"], worker["broken"]) == (["translate.translate"], {})


# Compose


def services(file: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load(file.read_text())["services"]
    return found


def test_in_compose_they_run_as_everybody_else_does() -> None:
    ours, theirs = services(EXAMPLE / "compose.yaml"), services(DEPLOY / "compose.yaml")
    assert ours.keys() - theirs.keys() == {"register", "own-actors"}
    for name, like in (("register", "migrate"), ("own-actors", "agents")):
        service = ours[name]
        for key in ("read_only", "cap_drop", "security_opt", "restart"):
            assert service[key] == theirs[like][key]
        assert service["tmpfs"] == ["/tmp"]
        assert re.fullmatch(rf"our-windlass:{re.escape(VERSION)}-\d+", service["image"])
        for volume in service["volumes"]:
            source = volume.partition(":")[0]
            assert not source.startswith(".") or (DEPLOY / source).exists(), "seen from the first file"
        known = {f"WINDLASS_{field.upper()}" for field in Settings.model_fields} | {"MODEL_URL"}
        assert service["environment"].keys() <= known
    assert ours["register"]["command"] == ["actors", "register"]
    assert ours["own-actors"]["command"] == ["worker"]
    assert ours["own-actors"]["depends_on"] == {"register": {"condition": "service_completed_successfully"}}
    grace = int(ours["own-actors"]["stop_grace_period"].removesuffix("s"))
    drain = float(ours["own-actors"]["environment"]["WINDLASS_DRAIN_SECONDS"])
    assert grace >= drain + 3 * Settings().stop_grace_seconds + 5


def test_in_compose_prometheus_reads_them_too() -> None:
    (mounted,) = services(EXAMPLE / "compose.yaml")["prometheus"]["volumes"]
    source, target, _ = mounted.split(":")
    assert yaml.safe_load((DEPLOY / source).read_text()) == [{"targets": ["own-actors:9100"]}]
    (job, *_) = yaml.safe_load((DEPLOY / "monitoring" / "prometheus.yml").read_text())["scrape_configs"]
    (looked_for,) = [pattern for each in job["file_sd_configs"] for pattern in each["files"]]
    assert Path(target).match(looked_for)
