"""From a request's body to a task that can be stored; what cannot be, named field by field."""

import math
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest

from tests.support.engine.submissions import ACTORS, ADMIN, DRILLS, SETTINGS, USER, accepted, pointers, refused
from windlass.services.api.access.auth import Caller
from windlass.services.api.http.errors import Problem
from windlass.services.api.tasks.submission import check_idempotency_key, read, under_idempotency_key
from windlass.shared.concerns import Concern
from windlass.shared.settings import Settings
from windlass.shared.store.tasks import Submission


def test_the_smallest_task_gets_the_defaults() -> None:
    task = accepted({"actor": "probe"})
    assert (task.actor, task.provider, task.user_id, task.payload) == ("probe", "probe", "ann", {})
    assert (task.priority, task.max_retries, task.timeout_seconds, task.max_age_seconds) == (2, 3, 300, None)


def test_ids_grow_with_time() -> None:
    ids = [accepted({"actor": "probe"}).task_id for _ in range(50)]
    assert ids == sorted(ids)
    assert {each.version for each in ids} == {7}


def test_every_field_arrives() -> None:
    parent, other = uuid4(), uuid4()
    task = accepted(
        {
            "actor": "probe", "provider": "slow", "payload": {"seconds": 1}, "task_type": "drill", "priority": 0,
            "max_retries": 7, "timeout_seconds": 12.5, "max_age_seconds": 60, "delay_seconds": 5, "tags": ["a", "b"],
            "project_id": "p", "workflow_id": "w", "parent_task_id": str(parent), "depends_on": [str(other)],
            "dedupe_key": "k", "dedupe_ttl_seconds": 9,
        }
    )  # fmt: skip
    assert task == Submission(
        task_id=task.task_id, actor="probe", provider="slow", payload={"seconds": 1}, user_id="ann",
        timeout_seconds=12.5, task_type="drill", priority=0, max_retries=7, max_age_seconds=60, delay_seconds=5,
        tags=["a", "b"], project_id="p", workflow_id="w", parent_task_id=parent, depends_on=[other],
        reach="ann", dedupe_key="k", dedupe_ttl_seconds=9,
    )  # fmt: skip


@pytest.mark.parametrize("zone", ["Z", "+02:00", "+14:00", "-20:00", "+23:59"])
def test_run_at_is_the_same_moment_in_a_zone_that_postgres_can_read(zone: str) -> None:
    tomorrow = (datetime.now(UTC) + timedelta(days=2)).date()
    moment = f"{tomorrow}T12:00:00{zone}"
    run_at = accepted({"actor": "probe", "run_at": moment}).run_at
    assert run_at is not None
    kept = datetime.fromisoformat(run_at)
    assert kept == datetime.fromisoformat(moment)
    offset = kept.utcoffset()
    assert offset is not None
    assert abs(offset) < timedelta(hours=16)


def test_run_at_in_the_past_means_now() -> None:
    assert accepted({"actor": "probe", "run_at": "2001-01-01T00:00:00Z"}).run_at is None


def test_run_at_has_the_horizon_of_a_delay() -> None:
    far = (datetime.now(UTC) + timedelta(days=367)).isoformat()
    assert pointers(refused({"actor": "probe", "run_at": far})) == {"/run_at"}
    near = (datetime.now(UTC) + timedelta(days=365)).isoformat()
    assert accepted({"actor": "probe", "run_at": near}).run_at is not None


def test_run_at_beyond_the_end_of_time_is_named_by_its_pointer() -> None:
    assert pointers(refused({"actor": "probe", "run_at": "9999-12-31T23:59:59-20:00"})) == {"/run_at"}


WRONG_FIELDS = [
    ("actor", ""),
    ("actor", 5),
    ("payload", []),
    ("provider", ""),
    ("task_type", "x" * 201),
    ("priority", 10),
    ("priority", -1),
    ("priority", "urgent"),
    ("max_retries", -1),
    ("timeout_seconds", 0),
    ("max_age_seconds", 0),
    ("run_at", "tomorrow"),
    ("run_at", "2030-01-01T12:00:00"),
    ("delay_seconds", -1),
    ("tags", "a"),
    ("project_id", ""),
    ("workflow_id", 7),
    ("parent_task_id", "not-a-uuid"),
    ("dedupe_key", ""),
    ("dedupe_key", "x" * 256),
    ("dedupe_ttl_seconds", 0),
    ("user_id", ""),
    ("surprise", True),
]


@pytest.mark.parametrize(("field", "value"), WRONG_FIELDS)
def test_a_wrong_field_is_named_by_its_pointer(field: str, value: Any) -> None:
    problem = refused({"actor": "probe", field: value})
    assert (problem.status, problem.code) == (422, "invalid-task")
    assert pointers(problem) == {f"/{field}"}


@pytest.mark.parametrize(
    ("field", "value"),
    [("max_age_seconds", 1e300), ("max_age_seconds", math.inf), ("timeout_seconds", math.nan), ("delay_seconds", 1e12)],
)
def test_a_time_that_no_clock_can_hold_is_named_by_its_pointer(field: str, value: float) -> None:
    assert pointers(refused({"actor": "probe", field: value})) == {f"/{field}"}


def test_a_missing_actor_is_named() -> None:
    assert pointers(refused({})) == {"/actor"}


def test_an_item_of_a_list_is_named_by_its_place() -> None:
    assert pointers(refused({"actor": "probe", "tags": ["fine", ""]})) == {"/tags/1"}
    assert pointers(refused({"actor": "probe", "depends_on": [str(UUID(int=1)), "x"]})) == {"/depends_on/1"}


def test_all_wrong_fields_are_named_at_once() -> None:
    assert pointers(refused({"actor": "probe", "priority": 99, "tags": 1})) == {"/priority", "/tags"}


@pytest.mark.parametrize("body", [None, [], "probe", 7])
def test_a_body_that_is_no_object_is_refused(body: Any) -> None:
    problem = refused(body)
    assert (problem.status, problem.code) == (422, "invalid-task")


def test_two_times_to_start_are_one_too_many() -> None:
    problem = refused({"actor": "probe", "run_at": "2001-01-01T00:00:00Z", "delay_seconds": 5})
    assert problem.status == 422
    assert problem.errors is not None
    assert "run_at or delay_seconds" in problem.errors[0]["detail"]


def test_an_unknown_actor_is_refused_with_the_known_ones() -> None:
    problem = refused({"actor": "alchemist"})
    assert (problem.status, problem.code) == (422, "unknown-actor")
    assert pointers(problem) == {"/actor"}
    assert "probe" in problem.detail


def test_an_unknown_provider_is_refused() -> None:
    problem = refused({"actor": "probe", "provider": "nobody"})
    assert (problem.status, problem.code) == (422, "unknown-provider")
    assert pointers(problem) == {"/provider"}


@pytest.mark.parametrize(
    ("payload", "pointer"),
    [
        ({"seconds": -1}, "/payload/seconds"),
        ({"steps": "many"}, "/payload/steps"),
        ({"outcome": "maybe"}, "/payload/outcome"),
        ({"error_type": "Nonsense"}, "/payload/error_type"),
        ({"a/b~c": 1}, "/payload/a~1b~0c"),
    ],
)
def test_a_wrong_payload_is_named_below_it(payload: dict[str, Any], pointer: str) -> None:
    problem = refused({"actor": "probe", "payload": payload})
    assert (problem.status, problem.code) == (422, "invalid-payload")
    assert pointers(problem) == {pointer}


def test_in_a_batch_the_pointer_begins_with_the_task_s_place() -> None:
    assert pointers(refused({"actor": "probe", "priority": 99}, below="/tasks/7")) == {"/tasks/7/priority"}
    wrong_payload = {"actor": "probe", "payload": {"seconds": -1}}
    assert pointers(refused(wrong_payload, below="/tasks/7")) == {"/tasks/7/payload/seconds"}
    assert pointers(refused({"actor": "alchemist"}, below="/tasks/7")) == {"/tasks/7/actor"}


@pytest.mark.parametrize("outcome", ["crash", "hang"])
@pytest.mark.parametrize(("caller", "settings"), [(ADMIN, SETTINGS), (USER, DRILLS), (USER, SETTINGS)])
def test_a_harmful_probe_is_refused_unless_an_admin_asks_where_drills_are_on(
    outcome: str, caller: Caller, settings: Settings
) -> None:
    problem = refused({"actor": "probe", "payload": {"outcome": outcome}}, caller, settings)
    assert (problem.status, problem.code) == (403, "forbidden")
    assert pointers(problem) == {"/payload/outcome"}


@pytest.mark.parametrize("outcome", ["crash", "hang"])
def test_a_harmful_probe_is_accepted_from_an_admin_where_drills_are_on(outcome: str) -> None:
    assert accepted({"actor": "probe", "payload": {"outcome": outcome}}, ADMIN, DRILLS).payload == {"outcome": outcome}


def test_a_probe_that_pauses_its_provider_for_everybody_is_an_admin_s() -> None:
    stormy = {"actor": "probe", "payload": {"error_type": "RateLimited", "retry_after": 600, "fail_times": 1}}
    problem = refused(stormy, USER, DRILLS)
    assert (problem.status, problem.code, pointers(problem)) == (403, "forbidden", {"/payload/error_type"})
    assert accepted(stormy, ADMIN).payload == stormy["payload"]


def test_only_an_admin_submits_for_somebody_else() -> None:
    problem = refused({"actor": "probe", "user_id": "bob"}, USER)
    assert (problem.status, problem.code) == (403, "forbidden")
    assert pointers(problem) == {"/user_id"}
    assert accepted({"actor": "probe", "user_id": "bob"}, ADMIN).user_id == "bob"


def test_a_user_depends_on_own_tasks_and_an_admin_on_everybody_s() -> None:
    assert accepted({"actor": "probe"}, USER).reach == "ann"
    assert accepted({"actor": "probe", "user_id": "bob"}, ADMIN).reach is None


def test_a_webhook_url_concerns_those_who_tell() -> None:
    submission = accepted({"actor": "probe", "webhook_url": "https://example.org/hook"})
    assert submission.webhook_url == "https://example.org/hook"
    assert submission.concerns == Concern.WEBHOOK.value


@pytest.mark.parametrize("url", ["ftp://example.org", "https://ann:secret@example.org/", "https://a.org/#b", "hook"])
def test_a_webhook_url_that_could_not_be_spoken_to_is_refused(url: str) -> None:
    problem = refused({"actor": "probe", "webhook_url": url})
    assert problem.status == 422
    assert pointers(problem) == {"/webhook_url"}


def test_a_payload_has_a_cap_of_its_own() -> None:
    small = Settings(largest_payload_bytes=1000)
    room = 1000 - len('{"result":""}')
    assert accepted({"actor": "probe", "payload": {"result": "x" * room}}, settings=small)
    problem = refused({"actor": "probe", "payload": {"result": "x" * (room + 1)}}, settings=small, below="/tasks/3")
    assert (problem.status, problem.code) == (413, "payload-too-large")
    assert pointers(problem) == {"/tasks/3/payload"}


# Idempotency keys


def hash_of(*bodies: dict[str, Any]) -> str | None:
    requests = [read(body) for body in bodies]
    return under_idempotency_key("k", [accepted(body) for body in bodies], requests, SETTINGS, ACTORS)[0].body_hash


def test_the_hash_minds_neither_order_nor_a_default_written_out() -> None:
    first = {"actor": "probe", "payload": {"seconds": 1, "steps": 2}, "tags": ["a"]}
    second = {
        "tags": ["a"],
        "priority": 2,
        "max_retries": 3,
        "dedupe_ttl_seconds": 86400,
        "payload": {"steps": 2, "seconds": 1},
        "actor": "probe",
    }
    assert hash_of(first) == hash_of(second)


@pytest.mark.parametrize(
    "other",
    [
        {"actor": "probe", "payload": {"seconds": 2}},
        {"actor": "probe", "payload": {"seconds": 1}, "priority": 3},
        {"actor": "probe", "provider": "slow", "payload": {"seconds": 1}},
    ],
)
def test_another_request_has_another_hash(other: dict[str, Any]) -> None:
    assert hash_of({"actor": "probe", "payload": {"seconds": 1}}) != hash_of(other)


def test_each_task_of_a_batch_has_a_key_of_its_own_and_the_whole_request_s_hash() -> None:
    bodies = [{"actor": "probe", "payload": {"steps": number}} for number in range(3)]
    tasks = under_idempotency_key(
        "k", [accepted(body) for body in bodies], [read(body) for body in bodies], SETTINGS, ACTORS
    )
    assert [task.idempotency_key for task in tasks] == ["k", "k 1", "k 2"]
    assert {task.body_hash for task in tasks} == {hash_of(*bodies)}
    assert hash_of(*bodies) != hash_of(bodies[0])


@pytest.mark.parametrize("key", ["", "x" * 256, "with space", "tab\t", "umläut", "nul\0"])
def test_a_key_that_cannot_be_seen_or_is_too_long_is_refused(key: str) -> None:
    with pytest.raises(Problem) as problem:
        check_idempotency_key(key)
    assert (problem.value.status, problem.value.code) == (422, "invalid-idempotency-key")
    assert pointers(problem.value) == {"/Idempotency-Key"}


@pytest.mark.parametrize("key", [None, "x", "x" * 255, "550e8400-e29b-41d4-a716-446655440000", "a/b~c!"])
def test_other_keys_are_fine(key: str | None) -> None:
    check_idempotency_key(key)


SECRET = "s3cret" * 4


def test_labels_are_kept_without_secrets() -> None:
    body = {
        "actor": "media", "provider": "leonardo", "task_type": f"Bearer {SECRET}", "project_id": f"https://me:{SECRET}@x",
        "workflow_id": f"wl_abcdef_{SECRET}", "tags": ["nightly", f"Authorization: {SECRET}"],
        "payload": {
            "action": "txt2img", "prompt": f"https://me:{SECRET}@x", "workflow_run_id": f"sk-{SECRET}",
            "interaction_id": f"Bearer {SECRET}",
        },
    }  # fmt: skip
    task = accepted(body)
    assert SECRET not in str({**msgspec.structs.asdict(task), "payload": task.payload["prompt"]})
    assert task.tags == ["nightly", "Authorization: [scrubbed]"]
    assert task.workflow_run_id == "[scrubbed]"


@pytest.mark.parametrize("field", ["dedupe_key", "user_id"])
def test_what_tells_one_thing_from_another_is_refused_with_a_secret_in_it(field: str) -> None:
    problem = refused({"actor": "probe", field: f"https://me:{SECRET}@x"}, ADMIN)
    assert pointers(problem) == {f"/{field}"}
    assert SECRET not in str(problem.errors)


def test_an_idempotency_key_with_a_secret_in_it_is_refused() -> None:
    with pytest.raises(Problem) as problem:
        check_idempotency_key(f"wl_abcdef_{SECRET}")
    assert (problem.value.status, problem.value.code) == (422, "invalid-idempotency-key")


def keyed(key: object, limit: int = 2) -> Settings:
    return Settings(actors={"probe": {"concurrency": {"key": key, "limit": limit}}})


@pytest.mark.parametrize(
    ("pointers_", "said", "key"),
    [
        ("/result/account", {"account": "acme"}, "acme"),
        ("/result/account", {"account": 7}, "7"),
        ("/result/account", {"account": {"b": 1, "a": [True]}}, '{"a":[true],"b":1}'),
        ("/result/account", {}, None),
        ("/result/account", {"account": None}, None),
        ("/result/account/id", {"account": "acme"}, None),
        ("/result/0", ["acme"], "acme"),
        ("/result/1", ["acme"], None),
        ("/result/a~1b~0c", {"a/b~c": "acme"}, "acme"),
        (["/result/account", "/result/region"], {"account": "acme", "region": "eu"}, '["acme","eu"]'),
        (["/result/account", "/result/region"], {"account": 'a","b', "region": ""}, '["a\\",\\"b",""]'),
        (["/result/account", "/result/region"], {"account": "acme"}, None),
    ],
)
def test_a_concurrency_key_is_what_stands_at_its_place_in_the_payload(
    pointers_: object, said: object, key: str | None
) -> None:
    task = accepted({"actor": "probe", "payload": {"result": said}}, settings=keyed(pointers_))
    assert task.concurrency_key == key
    assert task.concerns == (32 if key is not None else 0)


def test_a_concurrency_key_that_is_too_long_is_named() -> None:
    body = {"actor": "probe", "payload": {"result": {"account": "x" * 256}}}
    problem = refused(body, settings=keyed("/result/account"), below="/3")
    assert (problem.status, problem.code) == (422, "concurrency-key-too-long")
    assert pointers(problem) == {"/3/payload/result/account"}
    body["payload"] = {"result": {"account": "x" * 255}}
    assert accepted(body, settings=keyed("/result/account")).concurrency_key == "x" * 255
