"""A project that is made, filled and run to its end, over REST."""

from typing import Any

from tests.support.installation import Client
from tests.support.waiting import wait_until


def run_a_project(client: Client, **item: Any) -> None:
    made = client.http.post("/api/v1/projects", json={"name": "a project"})
    path = made.raise_for_status().headers["Location"]
    client.http.post(f"{path}/items", json={"actor": "probe", **item}).raise_for_status()
    client.http.post(f"{path}/run").raise_for_status()
    wait_until("it is idle", lambda: client.http.get(f"{path}/queue/status").json()["state"] == "idle")
