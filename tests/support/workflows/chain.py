"""A chain of real work on the bundled providers: a summary, a picture of each of its points, an agent that reviews
them, a person, and a last summary; and what the other side has been paid for."""

from collections import Counter
from typing import Any
from uuid import uuid4

from tests.support.agents_at_work import COMMAND
from tests.support.installation import Client
from tests.support.providers.fake_providers import FakeProviders
from tests.support.waiting import wait_until
from windlass.shared.settings import DEMO_AGENT

CONFIG = f"""
[providers.leonardo]
poll_seconds = 0.1

[providers.openrouter]
actor = "summarize"
adapter = "openrouter"
model = "vendor/small"

[agents.reviewer]
command = {[*COMMAND[:-1], str(DEMO_AGENT)]}
sandbox = "off"

[network]
allow_private = ["127.0.0.1"]
"""
ACTORS = ("probe", "summarize", "media", "agent")
PICTURES = tuple(f"pictures[{n}]" for n in range(3))
PAID_STEPS = ("summary", *PICTURES, "last")
QUESTION = "publish it?"
MOST_SECONDS = 120
"""A worker that was killed is missed after its lease, and the machine may be busy."""


class Chain:
    """One of them. Everything that it sends to a provider has its own `mark` in it, and so is found in the books."""

    def __init__(self, client: Client, fake: FakeProviders) -> None:
        self._client = client
        self._fake = fake
        self.mark = f"lighthouse-{uuid4().hex[:8]}"
        self.workflow_id = ""

    def body(self) -> dict[str, Any]:
        """Its graph, as `POST /workflows` takes it."""
        log = f"The keeper of {self.mark} lit the lamp. He wrote it down. The night was long."
        points = [
            {"what": {"$text": [f"{self.mark} picture {n} of ", {"$from": "summary", "path": "/summary"}]}}
            for n in range(len(PICTURES))
        ]
        review = {"$text": ["Review these: ", {"$from": "pictures"}]}
        publish = {"$text": [f"Publish {self.mark}: ", {"$from": "review", "path": "/answer"}]}
        return {
            "name": "chain",
            "tasks": [
                {"key": "summary", "actor": "summarize", "payload": {"content": log}},
                {"key": "points", "actor": "probe", "depends_on": ["summary"],
                 "payload": {"seconds": 0, "result": {"points": points}}},
                {"key": "pictures", "actor": "media", "provider": "leonardo",
                 "for_each": {"$from": "points", "path": "/echo/points"},
                 "payload": {"action": "txt2img", "prompt": {"$item": True, "path": "/what"}}},
                {"key": "review", "actor": "agent", "depends_on": ["pictures"],
                 "payload": {"subagent_type": "reviewer", "prompt": review, "params": {"seconds": 0, "steps": 1}}},
                {"key": "last", "actor": "summarize", "depends_on": ["review"],
                 "approval": {"message": QUESTION, "expires_in_seconds": 3600}, "payload": {"content": publish}},
            ],
        }  # fmt: skip

    def submit(self) -> Any:
        answer = self._client.http.post("/api/v1/workflows", json=self.body())
        assert answer.status_code == 201, answer.text
        self.workflow_id = answer.json()["workflow_id"]
        return answer.json()

    def read(self) -> Any:
        return self._client.http.get(f"/api/v1/workflows/{self.workflow_id}").raise_for_status().json()

    def tasks(self) -> dict[str, Any]:
        """By key, without what only stands for others."""
        nodes = [each for node in self.read()["nodes"] for each in (node, *(node.get("children") or ()))]
        return {node["key"]: self._client.get(node["task_id"]) for node in nodes if node["task_id"]}

    def questions(self) -> list[Any]:
        items = self._client.http.get("/api/v1/approvals").raise_for_status().json()["items"]
        return [each for each in items if each["workflow_id"] == self.workflow_id]

    def wait_for_the_question(self) -> Any:
        wait_until("somebody is asked", lambda: self.questions() or self._has_ended(), seconds=MOST_SECONDS)
        assert self.questions(), self.complaints()
        return self.questions()[0]

    def approve(self, comment: str = "fine") -> Any:
        path = f"/api/v1/tasks/{self.wait_for_the_question()['task_id']}/approve"
        return self._client.http.post(path, json={"comment": comment}).raise_for_status().json()

    def finished(self) -> Any:
        wait_until("the chain has ended", self._has_ended, seconds=MOST_SECONDS)
        return self.read()

    def paid(self) -> Counter[str]:
        """How often the providers were paid, by step: whatever they took an order for, also if nobody got it."""
        pictures = Counter(
            f"pictures[{n}]"
            for order in self._fake.books("leonardo")["orders"]
            for n in range(len(PICTURES))
            if f"{self.mark} picture {n} of" in order["prompt"]
        )
        chats = [each["prompt"] for each in self._fake.books("openrouter")["orders"] if self.mark in each["prompt"]]
        return pictures + Counter("last" if f"Publish {self.mark}" in prompt else "summary" for prompt in chats)

    def complaints(self) -> dict[str, Any]:
        """What went wrong, for the message of a test that fails."""
        return {key: task["error"] for key, task in self.tasks().items() if task["error"] is not None}

    def _has_ended(self) -> bool:
        return bool(self.read()["status"] != "running")


def was_paid_once(chain: Chain) -> None:
    """Fails unless all of it was done, and each step paid for once."""
    over = chain.finished()
    assert (over["status"], over["counts"]["live"], over["failures"]) == ("completed", 0, 0), chain.complaints()
    assert chain.paid() == Counter(PAID_STEPS)
