"""An installation as a busy one looks: real work of every kind, in every state, ordered over REST."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.browser.busy_clockwork import CLOCKWORK, clockwork_at_work
from tests.browser.busy_workflows import workflows_at_work
from tests.support.agents_at_work import COMMAND
from tests.support.installation import Client
from tests.support.media_installation import CONFIG, Studio, a_studio
from tests.support.servers.databases import execute, migrate
from tests.support.servers.private_servers import open_directory, throw_away_servers
from tests.support.waiting import wait_until
from tests.support.webhook_receiver import Receiver, receiving
from windlass.shared.settings import DEMO_AGENT

ROOMY: dict[str, Any] = {
    "actors": ("media", "probe", "summarize", "agent", "embed", "webhook"),
    "WINDLASS_ACTOR_THREADS": "16",
    "WINDLASS_MEMORY_GATHER_SECONDS": "0.2",
}
BUSY = (
    CONFIG
    + CLOCKWORK
    + f"""
[providers.nightly]
actor = "probe"
limit = 4

[providers.archive]
actor = "probe"
limit = 2

[providers.flaky]
actor = "probe"
limit = 8

[agents.demo]
command = {[*COMMAND[:-1], str(DEMO_AGENT)]}
sandbox = "off"
memory = 3
stats = 7
"""
)
PROMPTS = (
    "a lighthouse at dusk, heavy sea", "a fox in the snow, woodcut", "an orchard under a lilac sky", "the harbour, ink",
    "a paper boat on a calm lake", "mountains and a tram, gouache", "a greenhouse at night", "wheat before the storm",
)  # fmt: skip
TEXT = (
    "A windlass hauls a heavy load. Its drum is turned by a crank, and the rope winds around it. What makes it more "
    "than a winch is the pawl, which falls behind every tooth of a wheel, so that the load never slips back. "
) * 6
FAILURES = {
    "ServiceUnavailable": 9, "NetworkTimeout": 5, "ContentRejected": 4, "QuotaExhausted": 2, "InvalidInput": 1,
}  # fmt: skip


@dataclass
class Busy:
    """What there is to see, by what one would look for."""

    studio: Studio
    tasks: dict[str, str] = field(default_factory=dict)
    projects: dict[str, str] = field(default_factory=dict)
    workflows: dict[str, str] = field(default_factory=dict)
    schedules: dict[str, str] = field(default_factory=dict)
    webhooks: dict[str, str] = field(default_factory=dict)
    deliveries: dict[str, str] = field(default_factory=dict)
    memories: list[str] = field(default_factory=list)

    @property
    def client(self) -> Client:
        return self.studio.client


@contextmanager
def a_busy_house() -> Iterator[Busy]:
    """With servers of its own: for who runs outside of pytest."""
    with throw_away_servers() as servers, open_directory() as directory:
        execute(servers.database_url, "CREATE DATABASE busy")
        migrate(servers.database_url.rpartition("/")[0] + "/busy")
        with (
            httpx.Client(base_url=str(servers.management_url), trust_env=False) as management,
            a_studio(servers, "busy", management, directory, config=BUSY, **ROOMY) as studio,
            receiving() as receiver,
        ):
            yield fill(studio, receiver)


def fill(studio: Studio, receiver: Receiver) -> Busy:
    busy = Busy(studio)
    work_that_ends(busy)
    work_that_fails(busy)
    projects_at_work(busy)
    busy.workflows, waiting = workflows_at_work(busy.studio)
    busy.tasks |= waiting
    busy.schedules, busy.webhooks, busy.deliveries = clockwork_at_work(studio, receiver)
    busy.memories = memories_of(busy)
    work_that_goes_on(busy)
    operators_at_work(busy)
    return busy


def memories_of(busy: Busy) -> list[str]:
    """With their vectors, so that a question finds them by both ways."""
    path = "/api/v1/memory/search?q=which%20queues%20keep%20their%20promises"

    def found() -> Any:
        answer = busy.client.http.get(path).raise_for_status().json()
        return answer["items"] if answer["coverage"] == 1 and not answer["degraded"] else []

    return [each["event"]["event_id"] for each in wait_until("all is embedded", found)]


def work_that_ends(busy: Busy) -> None:
    client = busy.client
    ids = [
        client.submit(
            actor="media",
            provider="leonardo",
            user_id=("ann", "ben")[number % 2],
            tags=["spring"],
            payload={"action": "txt2img", "prompt": prompt, "workflow_run_id": f"campaign-{number % 3 + 1}"},
        )["task_id"]
        for number, prompt in enumerate(PROMPTS)
    ]
    ids += [
        client.submit(actor="summarize", task_type=word, payload={"content": TEXT, "max_words": 40})["task_id"]
        for word in ("minutes", "minutes", "press-review", "letters")
    ]
    agent = client.submit(
        actor="agent",
        task_type="research",
        payload={"subagent_type": "demo", "prompt": "Which peers keep their promises?", "params": {"seconds": 1}},
    )
    ids += client.submit_many(
        [
            {"task_type": word, "tags": ["night"], "provider": "nightly", "payload": {"seconds": 0.2, "result": word}}
            for word in ("thumbnails", "transcript", "index", "backup-check") * 6
        ]
    )
    ids += [client.submit(task_type="transcript", payload={"outcome": "transient", "fail_times": 1})["task_id"]]
    for task_id in ids:
        client.finished(task_id, seconds=50)
    busy.tasks |= {"picture": ids[0], "summary": ids[len(PROMPTS)], "agent": agent["task_id"]}


def work_that_fails(busy: Busy) -> None:
    client = busy.client
    failing = [
        {
            "task_type": ("transcript", "index", "thumbnails")[number % 3],
            "max_retries": 0,
            "provider": "flaky" if error == "ServiceUnavailable" else "nightly",
            "payload": {"outcome": "transient", "error_type": error, "seconds": 0.1},
        }
        for error, times in FAILURES.items()
        for number in range(times)
    ]
    ids = client.submit_many(failing)
    rejected = client.submit(
        actor="media", provider="leonardo", payload={"action": "txt2img", "prompt": "a moderated scene"}
    )
    for task_id in [*ids, rejected["task_id"]]:
        client.finished(task_id, seconds=50)
    cancelled = client.submit(delay_seconds=3600, task_type="index")["task_id"]
    client.cancel(cancelled)
    busy.tasks |= {"dead": ids[0], "rejected": rejected["task_id"], "cancelled": cancelled}


def work_that_goes_on(busy: Busy) -> None:
    client = busy.client

    def thinking(prompt: str, steps: int) -> str:
        payload = {"subagent_type": "demo", "prompt": prompt, "params": {"seconds": 3600, "steps": steps}}
        return str(client.submit(actor="agent", task_type="research", user_id="ann", payload=payload)["task_id"])

    agent = thinking("Compare how queues keep their promises when a worker dies, and say which you would trust.", 4000)
    thinking("Read the minutes of the last year and list what was decided.", 900)
    slow = client.submit_many(
        [
            {
                "task_type": word,
                "provider": provider,
                "timeout_seconds": 7200,
                "payload": {"seconds": 3600, "steps": steps},
            }
            for word, provider, steps in (
                ("transcript", "nightly", 9000), ("thumbnails", "nightly", 40), ("index", "archive", 6000),
                ("backup-check", "archive", 3000), ("backup-check", "archive", 100), ("index", "archive", 100),
            )
        ]
    )  # fmt: skip
    again: dict[str, Any] = {"outcome": "transient", "error_type": "NetworkTimeout"}
    retrying = client.submit(task_type="transcript", payload=again, retry_delays=[600, 600], max_retries=2)["task_id"]
    client.submit(task_type="index", depends_on=[slow[0]])
    client.submit_many([{"task_type": "index", "delay_seconds": 7200}, {"task_type": "minutes", "delay_seconds": 90}])
    client.wait_until(retrying, "retrying")
    for task_id in (agent, slow[0], slow[2]):
        client.wait_until(task_id, "running")
    wait_until("the agent thinks aloud", lambda: sum(e["type"] == "output" for e in client.events(agent)) > 8)
    busy.tasks |= {"thinking": agent, "running": slow[0], "waiting": slow[-1], "retrying": retrying}


def operators_at_work(busy: Busy) -> None:
    client = busy.client
    client.change_provider("midjourney", paused=True, reason="invoice in question, Ann asks them")
    client.change_provider("nightly", limit=6, reason="a machine more tonight")
    client.change_provider("patient", breaker="open", reason="answers with other people's pictures")
    client.submit(actor="media", provider="midjourney", payload={"action": "txt2img", "prompt": "a kite, crayon"})
    for role, user_id in (("user", "ann"), ("user", "ben"), ("viewer", "screen")):
        client.http.post("/api/v1/keys", json={"role": role, "user_id": user_id}).raise_for_status()


def projects_at_work(busy: Busy) -> None:
    """One that loops, one that failed, one that was stopped by force, one that waits for somebody, and one of old."""
    agent = {"actor": "agent", "payload": {"subagent_type": "demo", "params": {"seconds": 3600, "steps": 600}}}
    probe = {"actor": "probe", "provider": "nightly", "tags": ["night"]}
    long = {**probe, "timeout_seconds": 7200, "payload": {"seconds": 3600, "steps": 6000}}
    site = a_project(busy, "new website", long, [
        {"title": title}
        for title in ("the front page", "the archive", "the search", "a newsletter", "the imprint")
    ])  # fmt: skip
    night = a_project(busy, "night archive", probe, [
        *({"title": f"reel {number}", "payload": {"seconds": 0.1}} for number in range(1, 9)),
        {"title": "reel 9", "payload": {"outcome": "permanent"}, "max_retries": 0},
        *({"title": f"reel {number}", "payload": {"seconds": 0.1}} for number in range(10, 13)),
    ])  # fmt: skip
    circles = a_project(
        busy, "goes in circles", agent, [{"title": "tidy up", "payload": {"prompt": "Tidy up, again."}}]
    )
    letters = a_project(busy, "letters", probe, [{"title": f"letter to {name}"} for name in ("Ada", "Ben", "Cleo")])
    old = a_project(busy, "last year", {}, [])
    for project_id in (site, night, circles):
        tell(busy, f"/{project_id}/run", mode="loop")
    thinking = queue_of(busy, circles)["current_task_id"]
    wait_until("it thinks", lambda: any(each["type"] == "output" for each in busy.client.events(thinking)))
    tell(busy, f"/{circles}/queue/force-stop", reason="it goes in circles")
    wait_until("the night's archive has ended", lambda: queue_of(busy, night)["state"] == "idle")
    busy.client.http.delete(f"/api/v1/projects/{old}").raise_for_status()
    busy.projects |= {"looping": site, "failed": night, "forced": circles, "idle": letters, "archived": old}


def a_project(busy: Busy, name: str, defaults: dict[str, Any], items: list[dict[str, Any]]) -> str:
    body = {"name": name, "defaults": defaults}
    made = busy.client.http.post("/api/v1/projects", json=body).raise_for_status().json()
    if items:
        tell(busy, f"/{made['project_id']}/items", items=items)
    return str(made["project_id"])


def tell(busy: Busy, path: str, **body: Any) -> None:
    busy.client.http.post(f"/api/v1/projects{path}", json=body).raise_for_status()


def queue_of(busy: Busy, project_id: str) -> dict[str, Any]:
    queue: dict[str, Any] = (
        busy.client.http.get(f"/api/v1/projects/{project_id}/queue/status").raise_for_status().json()
    )
    return queue
