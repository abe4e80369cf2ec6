"""Workflows and approvals by the clients, by the command line and as their page says, in one installation."""

import asyncio
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import httpx
import pytest

import windlass as library
from tests.acceptance.conftest import a_windlass_apart
from tests.support.command_line import Run, run
from tests.support.installation import KEY, NOBODY, Windlass
from tests.support.pages import files_of, lines_typed, page
from tests.support.servers.private_servers import Servers
from tests.support.up import WINDLASS
from tests.support.waiting import wait_until
from windlass import INDEX, ITEM, WorkflowEvent, WorkflowProgress, literal, signature, text
from windlass.client import default

__all__ = ["run"]

FILES = files_of("workflows.md")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the files that the page shows."""
    directory = tmp_path_factory.mktemp("workflows")
    for name, content in FILES.items():
        (directory / name).write_text(content)
    return directory


@pytest.fixture(scope="module")
def windlass(servers: Servers, migrated_template: str, management: httpx.Client, directory: Path) -> Iterator[Windlass]:
    settings = {"WINDLASS_ACTORS": str(directory / "languages.py"), "WINDLASS_QUEUES": "probe.probe,own"}
    with a_windlass_apart(
        servers, migrated_template, management, directory, config="", actors=("probe",), **settings
    ) as windlass:
        windlass.start_all()
        yield windlass


@pytest.fixture
def client(windlass: Windlass) -> Iterator[library.Client]:
    with library.Client(windlass.url, KEY) as client:
        yield client


@pytest.fixture
def environment(windlass: Windlass, directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    monkeypatch.setenv("WINDLASS_URL", windlass.url)
    monkeypatch.setenv("WINDLASS_API_KEY", KEY)
    monkeypatch.chdir(directory)
    monkeypatch.syspath_prepend(directory)
    monkeypatch.setattr(default, "_made", {})
    yield {**os.environ, "KEY": KEY, "PATH": f"{WINDLASS.parent}:{os.environ['PATH']}"}
    for made in default._made.values():
        made.close()


def asked_of(client: library.Client, workflow_id: str) -> library.Asked:
    def found() -> library.Asked | None:
        return next((each for each in client.approvals.list() if each.workflow_id == workflow_id), None)

    return wait_until("somebody is asked", found)


def test_results_elements_and_a_person_in_one_block(client: library.Client) -> None:
    with client.workflow("built", tags=["one"], failure_threshold=2, idempotency_key="built-once") as flow:
        top = flow.task("probe", {"result": {"parts": [{"n": "a"}, {"n": "b"}], "end": "!"}}, key="top")
        each = flow.task(
            "probe",
            {"result": text(INDEX, ITEM["n"], top.result["echo"]["end"])},
            for_each=top.result["echo"]["parts"],
            key="each",
            priority=1,
        )
        flow.task(
            "probe",
            {"result": [each.result[1]["echo"], top.result.get("none", "spare"), literal({"$from": "nobody"})]},
            key="join",
            approval={"message": "go?", "expires_in_seconds": 600},
        )
    assert (flow.workflow.status, flow.workflow.tags, flow.workflow.failure_threshold) == ("running", ("one",), 2)
    assert {(edge.from_, edge.to) for edge in flow.workflow.edges} == {
        ("top", "each"),
        ("top", "join"),
        ("each", "join"),
    }
    asked = asked_of(client, flow.workflow_id)
    assert (asked.key, asked.message, asked.expires_at is not None) == ("join", "go?", True)
    with pytest.raises(library.WorkflowTimeout, match="still running after 0 s; it goes on"):
        client.workflows.wait(flow.workflow_id, timeout=0)
    approved = client.approvals.approve(asked.task_id, comment="yes")
    assert approved.approval is not None
    assert (approved.approval.decision, approved.approval.comment) == ("approved", "yes")
    with pytest.raises(library.AlreadyDecided):
        client.approvals.reject(asked.task_id)
    done = client.workflows.wait(flow.workflow_id, timeout=60)
    assert (done.status, done.goes_on, done.counts.live) == ("completed", False, 0)
    assert [child.key for child in done.node("each").children or ()] == ["each[0]", "each[1]"]
    joined = client.get(done.task_id("join"))
    assert joined.result["echo"] == ["1b!", "spare", {"$from": "nobody"}]
    assert (joined.input["result"][0], joined.payload["result"][0]["$from"]) == ("1b!", "each")
    with pytest.raises(KeyError, match="there are: top, each, join"):
        done.node("nobody")
    with pytest.raises(library.NotEscalated):
        client.workflows.resume(done.workflow_id)
    with pytest.raises(library.WorkflowNotFound):
        client.workflows.get(NOBODY)
    with pytest.raises(library.InvalidWorkflow, match="/tasks/0/depends_on/0"):
        client.workflows.submit("wrong", [{"key": "a", "actor": "probe", "depends_on": ["b"]}])
    listed = list(client.workflows.list(name="built", tag="one", status=["completed", "failed"]))
    assert [(each.workflow_id, each.nodes) for each in listed] == [(done.workflow_id, ())]


def test_the_stream_is_typed_and_resumes_where_it_was(client: library.Client) -> None:
    first = signature("probe", {"result": 1}, key="first")
    made = client.workflows.submit("watched", first | signature("probe", {"result": first.result["echo"]}, key="then"))
    seen = list(client.workflows.watch(made.workflow_id))
    assert isinstance(seen[0], WorkflowEvent | WorkflowProgress)
    assert [each.event for each in seen if isinstance(each, WorkflowEvent)][-1] == "complete"
    assert {each.key for each in seen if isinstance(each, WorkflowProgress)} <= {"first", "then"}
    last = seen[-1]
    assert isinstance(last, WorkflowEvent)
    assert (last.status, [node.key for node in last.nodes]) == ("completed", ["first", "then"])
    assert list(client.workflows.watch(made.workflow_id, after=last.cursor)) == []
    again = list(client.workflows.messages(made.workflow_id, after=seen[0].cursor))
    assert (again[-1].event, again[-1].cursor) == ("complete", last.cursor)


def test_the_asynchronous_client_does_the_same(windlass: Windlass) -> None:
    async def use() -> None:
        async with library.AsyncClient(windlass.url, KEY) as client:
            async with client.workflow("awaited", failure_threshold=1) as flow:
                bad = flow.task("probe", {"outcome": "permanent"}, key="bad")
                flow.task("probe", key="late", delay_seconds=3600)
                flow.task("probe", key="tidy", depends_on=[bad.ended], delay_seconds=3600)
            stands = await client.workflows.wait(flow.workflow_id, timeout=60)
            assert (stands.status, stands.failures, stands.node("bad").status) == ("escalated", 1, "dead")
            resumed = await client.workflows.resume(flow.workflow_id, retry="none", reason="seen")
            assert (resumed.status, resumed.failures) == ("running", 0)
            cancelled = await client.workflows.cancel(flow.workflow_id, reason="enough")
            assert (cancelled.status, cancelled.cancel_requested) == ("cancelled", True)
            events = [event async for event in client.workflows.watch(flow.workflow_id)]
            assert [each.event for each in events if isinstance(each, WorkflowEvent)] == ["cancelled"]
            asked = await client.submit("probe", approval={"message": "sure?"})
            assert [each.task_id async for each in client.approvals.list()] == [asked.task_id]
            assert (await client.approvals.reject(asked.task_id, comment="no")).status == "cancelled"
            assert [each.name async for each in client.workflows.list(status="cancelled", name="awaited")] == [
                "awaited"
            ]

    asyncio.run(use())


@pytest.mark.usefixtures("environment")
def test_actors_of_ones_own_compose(client: library.Client) -> None:
    workflow_id = import_module("languages").everywhere("hi")
    done = client.workflows.wait(workflow_id, timeout=60)
    assert (done.name, done.status) == ("letters", "completed")
    assert client.get(done.task_id("join")).result == "hi in de; hi in fr"


@pytest.mark.usefixtures("environment")
def test_the_command_line_submits_decides_resumes_and_cancels(
    run: Run, client: library.Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def said(*words: str, code: int = 0) -> str:
        result = run(*words)
        assert result.code == code, result.err
        return result.out.strip()

    bad = '{"key": "bad", "actor": "probe", "payload": {"outcome": "permanent"}, "depends_on": []}'
    late = '{"key": "late", "actor": "probe", "delay_seconds": 3600, "depends_on": [{"key": "bad", "on": "ended"}]}'
    (tmp_path / "flow.json").write_text(f'{{"name": "typed", "tags": ["a"], "tasks": [{bad}, {late}]}}')
    submit = ("workflows", "submit", str(tmp_path / "flow.json"), "--tag", "b", "--failure-threshold", "1")
    workflow = said(*submit, "--idempotency-key", "typed-once")
    repeated = run(*submit, "--idempotency-key", "typed-once")
    assert (repeated.out.strip(), repeated.err[:23]) == (workflow, "there was one already; ")
    shown = run("workflows", "show", workflow, "--wait")
    assert (shown.code, f"windlass workflows resume {workflow}" in shown.err) == (1, True)
    facts = [f"{name}\t{value}" for name, value in shown.rows]
    assert "status\tescalated" in facts
    assert "failures\t1, 1 stop it" in facts
    assert [fact for fact in facts if re.match(r"task\tlate \w+ \S+, after bad \(in any way\)$", fact)]
    assert run("workflows", "list", "--status", "escalated", "--tag", "b").rows[1][:2] == [workflow, "escalated"]
    document = run("workflows", "resume", workflow, "--retry", "none", "-o", "json").document
    assert (document["status"], document["tags"]) == ("running", ["a", "b"])
    refused = run("workflows", "resume", workflow)
    assert (refused.code, "[not-escalated]" in refused.err) == (1, True)
    slow = run("workflows", "show", workflow, "--wait-timeout", "0")
    assert (slow.code, "is still running after 0 s" in slow.err) == (6, True)
    assert "status\tcancelled" in said("workflows", "cancel", workflow, "--reason", "enough")
    watched = run("workflows", "watch", workflow)
    assert (watched.code, "workflow  cancelled  1 dead, 1 cancelled" in watched.out) == (1, True)

    first, second = (said("submit", "probe", "--approval", f"{word}?") for word in ("good", "bad"))
    rows = run("approvals").rows
    assert [(row[0], row[5]) for row in rows[1:]] == [(first, "good?"), (second, "bad?")]
    assert said("approvals", "approve", first, "--comment", "fine").split("\t")[0] == first
    assert said("approvals", "reject", second) == f"{second}\tcancelled"
    late_word = run("approvals", "reject", first)
    assert (late_word.code, "[already-decided]" in late_word.err) == (1, True)
    assert client.wait(first).approval is not None
    assert dict(run("get", first).rows)["approval"].startswith("good? (approved by ")
    assert run("approvals", "list").err == "nothing waits for your word\n"


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("workflows", "submit", "nothing.yaml"), "cannot read nothing.yaml: No such file or directory"),
        (("workflows", "submit", "list.yaml"), "a workflow is an object with `name` and `tasks`"),
        (("workflows", "submit", "wrong.yaml"), "neither YAML nor JSON: "),
        (
            ("workflows", "resume", str(NOBODY), "--retry", "all"),
            "argument --retry: 'all' is not one of none, failed, failed-and-downstream",
        ),
        (("approvals", "aprove", str(NOBODY)), "did you mean `approve`?"),
        (("submit", "probe", "--approval-expires", "5"), "--approval-expires wants --approval"),
    ],
)
def test_what_is_typed_wrong_is_one_sentence(run: Run, directory: Path, words: tuple[str, ...], sentence: str) -> None:
    (directory / "list.yaml").write_text("- one\n- two\n")
    (directory / "wrong.yaml").write_text("name: [one\n")
    refused = run(*words)
    assert (refused.code, refused.out, len(refused.err.splitlines())) == (2, "", 1)
    assert sentence in refused.err


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page calls curl, which is not installed")
def test_the_page_does_what_it_says(
    windlass: Windlass,
    client: library.Client,
    environment: dict[str, str],
    run: Run,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = page("workflows.md")
    typed = [line.replace("http://127.0.0.1:8800", windlass.url) for line in lines_typed("workflows.md")]
    known = typed_by_hand(typed, environment, run, client)
    assert dict(run("workflows", "show", known["WORKFLOW"]).rows)["status"] == "completed"
    assert dict(run("workflows", "show", known["FRAGILE"]).rows)["status"] == "failed"
    (program,) = re.findall(r"(?<!\*\*\n\n)```python\n(.*?)```", text, re.DOTALL)
    exec(program, {})
    assert capsys.readouterr().out.splitlines()[-1] == "['Page 0: the north', 'Page 1: the south']"


def typed_by_hand(lines: list[str], environment: dict[str, str], run: Run, client: library.Client) -> dict[str, str]:
    """As a shell would; but `windlass` runs in this process, which is quicker. Returns the variables."""
    known = {"KEY": KEY}
    for line in lines:
        code = int(expected[1]) if (expected := re.search(r" +# exit code (\d)", line)) else 0
        command = re.sub(r" +# .*", "", line)
        variable, command = command.split("=", 1) if re.match(r"[A-Z]+=", command) else ("", command)
        if command == "windlass approvals":
            asked_of(client, known["WORKFLOW"])
        filled = re.sub(r"\$([A-Z]+)", lambda found: known[found[1]], command)
        if " | " in command:
            done_by_a_shell = subprocess.run(
                ["sh", "-c", f"echo {filled}"], env=environment, capture_output=True, text=True, check=True
            )
            known[variable] = done_by_a_shell.stdout.strip()
        elif "windlass " in command:
            done = run(*shlex.split(filled.removeprefix("$(").removesuffix(")"))[1:])
            assert done.code == code, (line, done)
            known[variable] = done.out.strip()
        elif variable:
            known[variable] = filled
        else:
            subprocess.run(shlex.split(filled), env=environment, stdout=subprocess.DEVNULL, check=True)
    return known
