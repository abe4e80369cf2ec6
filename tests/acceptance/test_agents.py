"""Agents as a client and an operator see them: cancelled, timed out, cut off with their worker, and never left over."""

import signal
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.acceptance.conftest import a_windlass_apart
from tests.support.agents_at_work import COMMAND, alive, identities, skip_without_a_sandbox
from tests.support.installation import Client, Task, Windlass
from tests.support.servers.private_servers import Servers, open_directory
from tests.support.waiting import wait_until
from windlass.shared.process.procfs import ProcessIdentity, descendants, direct_children
from windlass.shared.settings import DEMO_AGENT

NO_BUBBLEWRAP = Path(__file__).parent / "no_bubblewrap"
CONFIG = f"""
[providers.one-agent]
actor = "agent"
limit = 1

[providers.no-sandbox-here]
actor = "agent"

[agents.unruly]
command = {list(COMMAND)}
sandbox = "off"
timeout_seconds = 60

[agents.boxed]
command = {list(COMMAND)}

[agents.thinker]
command = {[*COMMAND[:-1], str(DEMO_AGENT)]}
sandbox = "best-effort"
network = true
"""


@pytest.fixture(scope="module")
def directory() -> Iterator[Path]:
    with open_directory() as directory:
        yield directory


@pytest.fixture(scope="module")
def windlass(servers: Servers, migrated_template: str, management: httpx.Client, directory: Path) -> Iterator[Windlass]:
    with a_windlass_apart(
        servers,
        migrated_template,
        management,
        directory,
        config=CONFIG,
        WINDLASS_DATA_DIR=str(directory / "data"),
        WINDLASS_QUEUES="agent.local,agent.one-agent",
        # Between the guardian's deadline and the lease's end there is time for a busy machine to end them all.
        WINDLASS_LEASE_SECONDS="14",
        WINDLASS_LEASE_MARGIN_SECONDS="5",
        WINDLASS_STOP_GRACE_SECONDS="2",
        WINDLASS_DRAIN_SECONDS="0.2",
    ) as windlass:
        # No janitor: what becomes of an agent's task when its worker dies is for guardian and successor alone.
        windlass.api, windlass.dispatcher, windlass.actors = map(windlass.start, ("api", "dispatcher", "actors"))
        windlass.wait_until_answering()
        yield windlass


@pytest.fixture
def client(windlass: Windlass) -> Client:
    return windlass.client


def submit(client: Client, agent: str = "unruly", *, options: dict[str, Any] | None = None, **params: Any) -> str:
    payload = {"subagent_type": agent, "prompt": "Behave.", "params": params}
    task_id: str = client.submit(actor="agent", payload=payload, **(options or {}))["task_id"]
    return task_id


def output(client: Client, task_id: str) -> str:
    return "".join(event["data"].get("text", "") for event in client.events(task_id) if event["type"] == "output")


def processes_of(client: Client, task_id: str) -> list[ProcessIdentity]:
    """Those that the agent has told of, once it is at work."""
    wait_until("the agent is at work", lambda: "ready" in output(client, task_id))
    return identities(told_pids(client, task_id))


def told_pids(client: Client, task_id: str) -> list[int]:
    return [int(line.split()[1]) for line in output(client, task_id).splitlines() if line.startswith("pid ")]


def event(client: Client, task_id: str, kind: str) -> dict[str, Any]:
    return next(each for each in client.events(task_id) if each["type"] == kind)


def killed(proof: dict[str, Any], signum: str = "SIGKILL") -> set[int]:
    return {pid for each in proof["signals"] if each["signal"] == signum for pid in each["pids"]}


def test_the_demo_agent_completes_and_thinks_aloud(client: Client, tmp_path: Path) -> None:
    skip_without_a_sandbox(tmp_path)
    body = {"subagent_type": "demo", "prompt": "What is a windlass?", "params": {"seconds": 0.2, "steps": 2}}
    task_id = client.http.post("/api/v1/tasks/agent", json=body).raise_for_status().json()["task_id"]
    task = client.finished(task_id)
    assert (task["status"], task["exit_code"], task["result"]["steps"]) == ("completed", 0, 2)
    assert output(client, task_id).splitlines()[1:3] == [
        "Step 1 of 2: what matters here is “What”.",
        "Step 2 of 2: what matters here is “is”.",
    ]
    told = [each["data"]["progress"] for each in client.events(task_id) if each["type"] == "progress"]
    assert [(each["percent"], each["message"]) for each in told][-1] == (100, "Counted to 2 of 2")


def test_a_cancelled_agent_is_proven_dead_before_anybody_is_told(client: Client) -> None:
    task_id = submit(client, do="sleep", stubborn=True, children=["stubborn", "daemon"])
    everyone = processes_of(client, task_id)
    assert client.cancel(task_id).status_code == 202
    task: Task = client.finished(task_id)
    assert alive(everyone) == []
    assert (task["status"], task["exit_code"]) == ("cancelled", 137)
    proof = event(client, task_id, "cancel")["data"]["proof"]
    assert proof["reason"] == "cancelled"
    assert killed(proof, "SIGTERM") == killed(proof) == {each.pid for each in everyone}
    assert proof["none_left_at"] < event(client, task_id, "cancel")["at"]


def test_a_slot_is_free_only_when_its_agent_s_last_process_is_gone(client: Client) -> None:
    first = submit(client, options={"provider": "one-agent"}, do="sleep", stubborn=True, children=["daemon"])
    everyone = processes_of(client, first)
    second = submit(client, options={"provider": "one-agent"}, do="print", text="mine\n")
    client.cancel(first)
    assert client.finished(second)["status"] == "completed"
    assert alive(everyone) == []
    proof = event(client, first, "cancel")["data"]["proof"]
    assert proof["none_left_at"] < event(client, second, "claim")["at"]


def test_out_of_time_the_next_attempt_gets_more_of_it_and_what_was_printed(client: Client) -> None:
    task_id = submit(client, options={"timeout_seconds": 8, "max_retries": 1}, do="sleep_then_tell", stubborn=True)
    task = client.finished(task_id)
    assert (task["status"], task["attempt"], task["timeout_seconds"]) == ("completed", 2, 12)
    retry = event(client, task_id, "retry")["data"]
    assert (retry["error"]["type"], retry["proof"]["reason"]) == ("TimedOut", "timed out")
    previous = task["result"]["order"]["previous_output"]
    assert previous.startswith("pid ")
    assert previous.endswith("\nready\n")


def test_an_agent_that_kills_its_keeper_leaves_nobody_behind(windlass: Windlass, client: Client) -> None:
    """As root's cannot, having another account: so here somebody else does it."""
    task_id = submit(client, options={"max_retries": 0}, do="sleep", stubborn=True, children=["daemon"])
    everyone = processes_of(client, task_id)
    worker = client.workers()[0]["pid"]
    (keeper,) = wait_until("its keeper", lambda: found if len(found := direct_children(worker)) == 1 else None)
    windlass.kill(keeper.pid)
    task = client.finished(task_id)
    assert task["error"]["type"] == "SubprocessFailed"
    assert task["error"]["message"] == "agent unruly has killed the process that keeps it"
    _agent, daemon = told_pids(client, task_id)
    assert alive(everyone) == []
    proof = event(client, task_id, "bury")["data"]["proof"]
    assert proof["keeper_was_killed"] is True
    assert daemon in killed(proof)
    guardian = windlass.actors.pid
    wait_until("the dead are collected", lambda: [each.pid for each in direct_children(guardian)] == [worker])


def test_permanent_errors_are_not_tried_again(client: Client) -> None:
    text = '{"error": {"kind": "permanent", "message": "no such book"}}\n'
    task = client.finished(submit(client, do="print", text=text))
    assert (task["status"], task["attempt"], task["error"]["message"]) == ("dead", 1, "no such book")


def test_what_postgres_cannot_keep_is_replaced_in_a_result_and_in_an_error(client: Client) -> None:
    text = r'{"a\u0000": "\ud800!", "b": 1}' + "\n"
    task = client.finished(submit(client, do="print", text=text))
    assert (task["status"], task["attempt"]) == ("completed", 1)
    assert task["result"] == {"a\ufffd": "\ufffd!", "b": 1}
    text = r'{"error": {"kind": "permanent", "message": "no \ud800 book\u0000"}}' + "\n"
    task = client.finished(submit(client, do="print", text=text))
    assert (task["error"]["type"], task["error"]["message"]) == ("InvalidInput", "no \ufffd book\ufffd")


def test_a_result_that_is_nested_too_deep_is_not_made_again(client: Client) -> None:
    for levels, died_of in ((64, None), (65, "ResultTooDeep"), (5000, "ResultTooDeep")):
        task = client.finished(submit(client, do="print", text='{"a":' * levels + "1" + "}" * levels + "\n"))
        assert (task["attempt"], task["error"] and task["error"]["type"]) == (1, died_of)


def test_stderr_and_progress_are_in_its_history(client: Client) -> None:
    text = '{"progress": {"percent": 40, "message": "Reading\\ud800"}}\n'
    task_id = submit(client, do="print", text=text, stderr="careful\n")
    task = client.finished(task_id)
    said = [each["data"] for each in client.events(task_id) if each["type"] == "output"]
    assert {"text": "careful\n", "stream": "stderr"} in said
    told = event(client, task_id, "progress")["data"]["progress"]
    assert (told["percent"], told["message"]) == (40, "Reading\ufffd")
    assert task["result"]["stdout"].startswith("pid ")
    assert "progress" not in task["result"]["stdout"]


def test_a_worker_that_is_told_to_stop_ends_its_agents_first(windlass: Windlass, client: Client) -> None:
    task_id = submit(client, do="sleep_then_tell", stubborn=True, children=["daemon"])
    everyone = processes_of(client, task_id)
    windlass.actors.send_signal(signal.SIGTERM)
    assert windlass.actors.wait(60) == 0
    assert alive(everyone) == []
    interrupt = event(client, task_id, "interrupt")
    assert killed(interrupt["data"]["proof"]) == {each.pid for each in everyone}
    assert client.get(task_id)["retry_count"] == 0
    windlass.actors = windlass.start("actors")
    task = client.finished(task_id)
    assert (task["status"], task["attempt"]) == ("completed", 2)
    assert "ready\n" in task["result"]["order"]["previous_output"]


@pytest.mark.parametrize("agent", ["unruly", "boxed"])
def test_the_guardian_ends_the_agents_of_a_killed_worker_before_it_starts_another(
    windlass: Windlass, client: Client, agent: str, tmp_path: Path
) -> None:
    if agent == "boxed":
        skip_without_a_sandbox(tmp_path)
    task_id = submit(client, agent, do="sleep_then_tell", stubborn=True, children=["daemon"])
    wait_until("the agent is at work", lambda: "ready" in output(client, task_id))
    worker = client.workers()[0]
    lease_end = datetime.fromisoformat(client.get(task_id)["lease_expires_at"])
    below = wait_until("the whole family", lambda: found if len(found := descendants(worker["pid"])) >= 3 else None)
    places = list((windlass.directory / "data" / "agents").glob(f"*/{task_id}-1"))
    windlass.kill(worker["pid"])
    wait_until("all of them are gone", lambda: alive(below) == [], every=0.005)
    task = client.finished(task_id)
    assert (task["status"], task["attempt"]) == ("completed", 2)
    assert "ready\n" in task["result"]["order"]["previous_output"]
    proof = event(client, task_id, "stall")["data"]["proof"]
    assert (proof["by"], proof["reason"]) == ("guardian", "it ended by itself (signal SIGKILL)")
    none_left_at = datetime.fromisoformat(proof["none_left_at"])
    assert none_left_at < lease_end
    (successor,) = [each for each in client.workers() if each["worker_id"] == task["worker_id"]]
    assert none_left_at < datetime.fromisoformat(successor["started_at"]), "no new worker has had a hand in it"
    assert len(places) == 1
    wait_until("the successor clears up", lambda: not places[0].exists())


def test_the_guardian_ends_the_agents_of_a_frozen_worker_before_its_lease_ends(
    windlass: Windlass, client: Client
) -> None:
    task_id = submit(client, do="sleep_then_tell", stubborn=True, children=["daemon"])
    everyone = processes_of(client, task_id)
    worker = client.workers()[0]
    windlass.kill(worker["pid"], signal.SIGSTOP)
    lease_end = datetime.fromisoformat(client.get(task_id)["lease_expires_at"])
    wait_until("all of them are gone", lambda: alive(everyone) == [])
    assert client.finished(task_id)["status"] == "completed"
    proof = event(client, task_id, "stall")["data"]["proof"]
    assert proof["reason"] == "it did not renew its lease in time"
    assert datetime.fromisoformat(proof["none_left_at"]) < lease_end
    assert {each.pid for each in everyone} <= killed(proof)


def test_without_bubblewrap_only_agents_that_may_run_without_a_sandbox_do(windlass: Windlass, client: Client) -> None:
    worker = windlass.start(
        "actors", WINDLASS_QUEUES="agent.no-sandbox-here", PYTHONPATH=str(NO_BUBBLEWRAP), PATH="/nowhere"
    )
    options = {"provider": "no-sandbox-here"}
    task = client.finished(submit(client, "boxed", options=options, do="tell"))
    assert (task["status"], task["error"]["type"], task["exit_code"]) == ("dead", "InvalidInput", None)
    assert task["error"]["message"] == (
        "agent boxed may only run in a sandbox, and there is none: bubblewrap is not installed. It runs without one "
        "if sandbox in [agents.boxed], or WINDLASS_AGENT_SANDBOX for all, is best-effort"
    )
    assert output(client, task["task_id"]) == ""
    assert client.finished(submit(client, "thinker", options=options, seconds=0))["status"] == "completed"
    log = windlass.log()
    assert log.count("NO SANDBOX: bubblewrap is not installed; these agents are refused: boxed, demo.") == 1
    assert log.count("NO SANDBOX: bubblewrap is not installed; these agents run without one: thinker") == 1
    assert "these agents run without a sandbox, as they are set: unruly" in log
    assert "these agents have the network of this machine, loopback and link-local addresses included" in log
    assert "public addresses alone): thinker" in log
    worker.send_signal(signal.SIGTERM)
    worker.wait(60)


@pytest.mark.parametrize(("path", "below"), [("/api/v1/tasks", "/payload"), ("/api/v1/tasks/agent", "")])
def test_an_agent_that_nobody_has_configured_is_refused_at_once(client: Client, path: str, below: str) -> None:
    payload = {"subagent_type": "stranger", "prompt": "Hello."}
    answer = client.http.post(path, json={"actor": "agent", "payload": payload} if below else payload)
    assert answer.status_code == 422
    (problem,) = answer.json()["errors"]
    assert problem["pointer"] == f"{below}/subagent_type"
    assert problem["detail"] == "no agent is called stranger; there are boxed, demo, thinker, unruly"


def test_a_project_stopped_by_force_proves_that_nothing_of_its_agent_lives(client: Client) -> None:
    params = {"do": "sleep", "stubborn": True, "children": ["stubborn", "daemon"]}
    defaults = {"actor": "agent", "payload": {"subagent_type": "unruly", "prompt": "Behave."}}
    made = client.http.post("/api/v1/projects", json={"name": "unruly", "defaults": defaults}).raise_for_status()
    project = f"/api/v1/projects/{made.json()['project_id']}"
    items = {"items": [{"payload": {"params": params}}, {"payload": {"params": params}}]}
    assert client.http.post(f"{project}/items", json=items).status_code == 201
    started = client.http.post(f"{project}/run", json={"mode": "loop"})
    task_id = started.json()["current_task_id"]
    everyone = processes_of(client, task_id)

    early = client.http.post(f"{project}/queue/force-stop", params={"wait": 0})
    assert (early.status_code, early.json()["success"], early.json()["state"]) == (202, False, "stopping")
    (left,) = early.json()["still_running"]
    assert left["task_id"] == task_id

    stopped = client.http.post(f"{project}/queue/force-stop", params={"wait": 50})
    assert stopped.status_code == 200, stopped.text
    assert alive(everyone) == []
    told = stopped.json()
    assert (told["success"], told["still_running"], told["open_jobs"]) == (True, [], [])
    assert (told["state"], told["stop_reason"], told["counts"]["waiting"]) == ("idle", "forced", 1)
    (run,) = client.http.get(f"{project}/runs").json()["items"]
    (of_the_agent,) = run["receipt"]["tasks"]
    assert (of_the_agent["task_id"], of_the_agent["proof"]) == (task_id, "keeper")
    assert killed(of_the_agent["processes"]) == {each.pid for each in everyone}
    (kept,) = client.http.get("/api/v1/audit", params={"action": "project.force-stopped"}).json()["items"]
    assert kept["details"]["tasks"] == run["receipt"]["tasks"]
