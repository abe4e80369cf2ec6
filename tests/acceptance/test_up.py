"""`windlass up` as a person uses it: start, look, kill what it runs, stop, start again."""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.installation import ENDED, PROJECT
from tests.support.metrics import Said, ask
from tests.support.pages import COMMANDS, page
from tests.support.servers.listening import is_loopback, listening_addresses
from tests.support.servers.private_servers import new_directory
from tests.support.up import READY, START_SECONDS, WINDLASS, WindlassUp, still_running
from tests.support.waiting import wait_until

PROCESSES = {"api", "dispatcher", "actors", "janitor", "orchestrator"}


@pytest.fixture(scope="module")
def installation() -> Iterator[WindlassUp]:
    directory = new_directory()
    installation = WindlassUp(directory / "data")
    yield installation
    installation.make_sure_that_it_has_stopped()
    shutil.rmtree(directory)


@pytest.fixture
def up(installation: WindlassUp) -> WindlassUp:
    """The module's installation, running; each test may leave it stopped, and none depends on another."""
    if not installation.is_running:
        installation.start()
    return installation


def test_says_that_it_is_ready_and_lists_what_runs(up: WindlassUp) -> None:
    wait_until("the ready line, and a link", lambda: up.output.count("\n") == 2)
    said = up.output.splitlines()
    ready = READY.fullmatch(said[0])
    link = re.fullmatch(r"windlass page (\S+)/sign-in#link_token=(\S+) \(signs in once, within 15 minutes\)", said[1])
    assert ready
    assert link
    assert link[1] == ready[1]
    with httpx.Client(base_url=ready[1], timeout=60, trust_env=False) as browser:
        uses = [browser.post("/api/v1/session", json={"link_token": link[2]}) for _ in range(2)]
        assert [each.status_code for each in uses] == [201, 401]
        assert (browser.get("/api/v1/session").json()["role"], uses[0].json()["faults"]) == ("admin", True)

    run = up.run_file()
    assert set(run) == PROCESSES | {"postgres", "rabbitmq", "fake_providers"}
    assert run["api"]["url"] == ready[1]
    assert run["postgres"]["url"].startswith("postgresql://")
    assert run["rabbitmq"]["url"].startswith("amqp://")
    pids = [up.pid_of(name) for name in run] + [
        entry["pid"] for entry in run["actors"] + run["janitor"] + run["orchestrator"]
    ]
    assert set(pids) <= {process.pid for process in up.everyone()}
    # It holds passwords.
    assert stat.S_IMODE((up.directory / "run.json").stat().st_mode) == 0o600

    addresses = listening_addresses(process.pid for process in up.everyone())
    assert addresses
    assert all(map(is_loopback, addresses)), addresses


def test_no_other_user_of_the_machine_can_read_what_it_keeps(up: WindlassUp) -> None:
    """Media, the fake providers' books, RabbitMQ's files; but for the way to Postgres, whose own place is closed."""
    order = {"provider": "leonardo", "action": "txt2img", "prompt": "a lighthouse"}
    with up.client() as client:
        made = client.post("/api/v1/tasks/media", json=order).raise_for_status().json()
        task = finished(client, made["task_id"])
    assert task["status"] == "completed", task
    # What is gone by the time that it is looked at is left out.
    places = [Path(folder, name) for folder, below, files in os.walk(up.directory) for name in (*below, *files)]
    kept = [path for path in places if not path.is_symlink()]
    assert {"media", "fake_providers", "rabbitmq", "postgres"} <= {path.name for path in kept}
    way = {up.directory, up.directory / "postgres"}
    open_to_others = {path for path in {up.directory, *kept} if may_others(path)}
    assert open_to_others <= way
    assert all(stat.S_IMODE(path.stat().st_mode) in {0o700, 0o711} for path in way)


def may_others(path: Path) -> bool:
    """Gone meanwhile, it is open to nobody."""
    try:
        return bool(stat.S_IMODE(path.stat().st_mode) & 0o077)
    except FileNotFoundError:
        return False


def test_any_prometheus_can_find_its_services(up: WindlassUp) -> None:
    """Each answers for itself, under the name that it has in the log."""
    listed = json.loads((up.directory / "metrics-targets.json").read_text())
    names = {target["labels"]["instance"]: target["labels"]["service"] for target in listed}
    assert names == {name: name for name in PROCESSES} | {"agents": "actors"}
    for target in listed:
        (address,) = target["targets"]
        said = wait_until("it answers", partial(answered, int(address.rpartition(":")[2])))
        assert said.values("windlass_build_info", service=target["labels"]["service"]) == [1]


def answered(port: int) -> Said | None:
    """Nothing while the process still starts."""
    try:
        return Said(ask(port))
    except httpx.ConnectError:
        return None


def test_a_second_one_on_the_same_data_directory_is_refused(up: WindlassUp) -> None:
    environment = {**os.environ, "WINDLASS_DATA_DIR": str(up.directory), "WINDLASS_PORT": "0"}
    second = subprocess.run([WINDLASS, "up"], env=environment, capture_output=True, text=True, timeout=150, check=False)
    assert second.returncode != 0
    assert f"already runs on {up.directory} (process {up.pid})" in second.stderr
    assert submit_and_complete(up)


def test_commands_find_it_and_its_key_by_themselves(up: WindlassUp) -> None:
    environment = {**os.environ, "WINDLASS_DATA_DIR": str(up.directory)}
    command = [str(WINDLASS), "submit", "probe", "result=found", "--wait"]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=150, check=False)
    assert found.returncode == 0, found.stderr
    assert '"echo": "found"' in found.stdout


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page calls curl, which is not installed")
def test_a_picture_a_summary_and_an_agent_are_made_as_the_page_shows(up: WindlassUp) -> None:
    """Each by the command line and by curl. Who watches the agent leaves it alone after a moment."""
    real_work = page("trying_it.md").partition("## Real work")[2].partition("\n## ")[0].replace("wait=30", "wait=50")
    activate, picture, summary, agent = COMMANDS.findall(real_work)
    told = typed(up, activate + picture)
    assert "completed" in told
    assert told.count("/api/v1/media/") >= 2, told
    assert typed(up, activate + summary).count('"summary"') >= 2
    watch = 'windlass watch "$TASK"'
    assert watch in agent
    it_runs = 'until windlass get "$TASK" | grep -q running; do sleep 0.2; done'
    typed(up, activate + agent.replace(watch, f"{it_runs}; {{ timeout --signal=INT 3 {watch} || [ $? -eq 124 ]; }}"))
    with up.client() as client:
        agents = client.get("/api/v1/tasks", params={"actor": "agent", "limit": 2}).json()["items"]
        for each in agents:
            wait_until("it is cancelled", partial(is_cancelled, up, each["task_id"]), seconds=60)
        *_, end = client.get(f"/api/v1/tasks/{agents[1]['task_id']}/events").json()["items"]
    assert end["data"]["proof"]["none_left_at"] < end["at"], "the first one ran, and was ended"


def is_cancelled(up: WindlassUp, task_id: str) -> bool:
    return status(up, task_id) == "cancelled"


def typed(up: WindlassUp, commands: str) -> str:
    """What a terminal in the repository shows."""
    ready = READY.search(up.output)
    assert ready
    script = commands.replace("http://127.0.0.1:8800", ready[1]).replace(".windlass/", f"{up.directory}/")
    environment = {**os.environ, "WINDLASS_DATA_DIR": str(up.directory)}
    done = subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=PROJECT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_refusals_are_no_errors_of_postgres(up: WindlassUp) -> None:
    nobody = "01890000-0000-7000-8000-000000000000"
    with up.client() as client:
        refused = client.post("/api/v1/tasks", json={"actor": "probe", "depends_on": [nobody]})
        assert refused.status_code == 422
    said = [line for line in up.log.splitlines() if line.startswith("postgres")]
    assert any("ready to accept connections" in line for line in said)
    assert [line for line in said if "ERROR" in line] == []


def test_services_that_are_killed_are_started_again(up: WindlassUp) -> None:
    before = {name: up.pid_of(name) for name in PROCESSES}
    for pid in before.values():
        os.kill(pid, signal.SIGKILL)
    wait_until(
        "all were started again",
        lambda: all(up.pid_of(name) != pid for name, pid in before.items()),
        seconds=START_SECONDS,
    )
    assert "janitor ended (killed by SIGKILL)" in up.log
    assert submit_and_complete(up)


def test_without_keys_the_fake_providers_answer_and_come_back_with_their_books(up: WindlassUp) -> None:
    before = up.run_file()["fake_providers"]
    order = {"prompt": "a lighthouse"}
    with httpx.Client(
        base_url=before["url"], headers={"Authorization": "Bearer any"}, timeout=60, trust_env=False
    ) as fake:
        ordered = fake.post("/leonardo/generations", json=order).raise_for_status().json()
        os.kill(before["pid"], signal.SIGKILL)
        after = wait_until("again", lambda: (now := up.run_file()["fake_providers"])["pid"] != before["pid"] and now)
        assert after["url"] == before["url"]
        job_id = ordered["sdGenerationJob"]["generationId"]
        found = fake.get(f"/leonardo/generations/{job_id}").raise_for_status().json()
    assert found["generations_by_pk"]["prompt"] == "a lighthouse"
    assert any(line.startswith("providers") for line in up.log.splitlines()), "its lines have its name before them"
    assert '"message"' not in up.log, "and are written for people"
    for service in ("api", "actors"):
        environment = Path("/proc", str(up.pid_of(service)), "environ").read_bytes()
        assert f"WINDLASS_FAKE_PROVIDERS_URL={before['url']}\0".encode() in environment


def test_servers_that_are_killed_are_started_again_where_they_were(up: WindlassUp) -> None:
    task_id = submit_and_complete(up)
    before = up.run_file()
    for name in ("postgres", "rabbitmq"):
        os.kill(before[name]["pid"], signal.SIGKILL)
    servers = ("postgres", "rabbitmq")
    wait_until("both are back", lambda: all(up.pid_of(name) != before[name]["pid"] for name in servers), seconds=150)
    after = up.run_file()
    assert [after[name]["url"] for name in ("postgres", "rabbitmq")] == [
        before[name]["url"] for name in ("postgres", "rabbitmq")
    ]
    assert submit_and_complete(up)
    assert status(up, task_id) == "completed"


def test_ctrl_c_leaves_no_process_and_the_next_start_finds_the_data(up: WindlassUp) -> None:
    task_id = submit_and_complete(up)
    everyone = up.everyone()
    assert up.stop(signal.SIGINT) == 0
    assert still_running(everyone) == []
    assert not (up.directory / "run.json").exists()

    up.start()
    assert status(up, task_id) == "completed"


def test_the_start_after_a_kill_clears_up_and_finds_the_data(up: WindlassUp) -> None:
    task_id = submit_and_complete(up)
    everyone = up.everyone()
    # The guardian and the broker cannot even react: whatever is left is for the next start.
    for name in ("actors", "rabbitmq"):
        os.kill(up.pid_of(name), signal.SIGSTOP)
    os.kill(up.pid, signal.SIGKILL)
    up.wait()
    assert still_running(everyone), "then this test proves nothing"

    up.start()
    assert still_running(everyone) == []
    assert status(up, task_id) == "completed"
    assert submit_and_complete(up)


def test_agents_run_in_a_process_of_their_own(up: WindlassUp) -> None:
    body = {"subagent_type": "demo", "prompt": "What is a windlass?", "params": {"seconds": 0.1}}
    with up.client() as client:
        task_id = client.post("/api/v1/tasks/agent", json=body).raise_for_status().json()["task_id"]
        task = finished(client, task_id)
        workers = client.get("/api/v1/workers").json()["items"]
    # Where the kernel makes no sandbox everything runs but agents, and they say why.
    refused = (task["error"] or {}).get("message", "").startswith("agent demo may only run in a sandbox")
    assert task["status"] == ("dead" if refused else "completed"), task["error"]
    assert refused == ("NO SANDBOX" in up.log)
    assert [worker["queues"] for worker in workers if worker["worker_id"] == task["worker_id"]] == [["agent.local"]]
    serving = [worker for worker in workers if worker["state"] == "active"]
    assert all("agent.local" not in worker["queues"] or worker["queues"] == ["agent.local"] for worker in serving)
    assert len(up.run_file()["actors"]) == 2
    assert re.search(r"^agents +\| .*agent\.local", up.log, re.MULTILINE), "its lines are told apart"


def submit_and_complete(up: WindlassUp) -> str:
    with up.client() as client:
        task_id = wait_until("accepted", lambda: submitted(client))
        task = finished(client, task_id)
        assert task["status"] == "completed", task
    return task_id


def finished(client: httpx.Client, task_id: str) -> dict[str, Any]:
    """Also while the api or Postgres is away for a moment."""

    def ended() -> dict[str, Any] | None:
        try:
            task: dict[str, Any] = client.get(f"/api/v1/tasks/{task_id}", params={"wait": 20}).json()
        except httpx.TransportError:
            return None
        return task if task["status"] in ENDED else None

    return wait_until("its end", ended, seconds=START_SECONDS)


def submitted(client: httpx.Client) -> str | None:
    """The id of a new task; None while Postgres or the api is away, as anybody may find it for a moment."""
    try:
        answer = client.post("/api/v1/tasks", json={"actor": "probe", "payload": {}})
    except httpx.TransportError:
        return None
    if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:
        return None
    assert answer.status_code == httpx.codes.CREATED, answer.text
    task_id: str = answer.json()["task_id"]
    return task_id


def status(up: WindlassUp, task_id: str) -> str:
    with up.client() as client:
        answer: str = client.get(f"/api/v1/tasks/{task_id}").json()["status"]
    return answer
