"""What tests of the page order over REST, and look up there."""

from typing import Any

from tests.support.media_installation import Studio


def new_key(house: Studio, role: str, user_id: str) -> str:
    made = house.client.http.post("/api/v1/keys", json={"role": role, "user_id": user_id}).raise_for_status().json()
    return str(made["key"])


def a_project(house: Studio, *items: dict[str, Any], name: str = "site") -> str:
    made = house.client.http.post("/api/v1/projects", json={"name": name, "defaults": {"actor": "probe"}})
    project_id: str = made.raise_for_status().json()["project_id"]
    house.client.http.post(f"/api/v1/projects/{project_id}/items", json={"items": items}).raise_for_status()
    return project_id


def read(house: Studio, project_id: str, path: str) -> Any:
    return house.client.http.get(f"/api/v1/projects/{project_id}/{path}").raise_for_status().json()


def a_workflow(house: Studio, *tasks: dict[str, Any], name: str = "report", **fields: Any) -> str:
    body = {"name": name, "tasks": [{"actor": "probe", **task} for task in tasks], **fields}
    return str(house.client.http.post("/api/v1/workflows", json=body).raise_for_status().json()["workflow_id"])


def flow(house: Studio, workflow_id: str) -> Any:
    return house.client.http.get(f"/api/v1/workflows/{workflow_id}").raise_for_status().json()


def task_of(house: Studio, workflow_id: str, key: str) -> str:
    return next(str(node["task_id"]) for node in flow(house, workflow_id)["nodes"] if node["key"] == key)


def approvals_in_the_audit_log(house: Studio, task_id: str) -> list[Any]:
    entries = house.client.http.get("/api/v1/audit").raise_for_status().json()["items"]
    return [each for each in entries if (each["action"], each["target"]) == ("task.approve", task_id)]
