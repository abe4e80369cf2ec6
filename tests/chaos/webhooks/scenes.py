"""A short scene with an endpoint, for the mutation of what it is told."""

import httpx

from tests.chaos.site.installation import Installation
from tests.chaos.webhooks.books import Books
from tests.chaos.webhooks.witness import install_witness
from tests.support.installation import KEY
from tests.support.waiting import wait_until

WAIT_SECONDS = 90
TASKS = 6


def tell_an_endpoint(installation: Installation) -> None:
    """Tasks end that an endpoint has subscribed to, one of them not well."""
    install_witness(installation.database_url)
    directory = installation.directory / "receiver"
    installation.record.webhooks.directory = directory
    url = f"{installation.links['receiver'].url}/steady-0"
    with httpx.Client(
        base_url=installation.api_url, headers={"Authorization": f"Bearer {KEY}"}, timeout=30, trust_env=False
    ) as http:
        made = http.post("/api/v1/webhooks", json={"url": url, "events": []}).raise_for_status().json()
        Books(directory).share("/steady-0", made["secret"])
        change = {"events": ["task.*"]}
        http.patch(f"/api/v1/webhooks/{made['webhook_id']}", json=change).raise_for_status()
        task = {"actor": "tell", "payload": {"mark": "told"}}

        def is_known() -> bool:
            return http.post("/api/v1/tasks", json=task).status_code == 201

        wait_until("the actor is known", is_known, seconds=WAIT_SECONDS, every=0.2)
        for number in range(TASKS):
            body = {**task, "payload": {"mark": f"told {number}", "deaths": int(number == 0)}}
            http.post("/api/v1/tasks", json=body).raise_for_status()
