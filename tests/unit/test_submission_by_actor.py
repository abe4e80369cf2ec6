"""What each actor's tasks are given and refused, and the shortcuts to them."""

from typing import Any

import msgspec
import pytest

from tests.support.engine.submissions import ACTORS, SETTINGS, USER, accepted, pointers, refused
from windlass.services.api.http.errors import Problem
from windlass.services.api.tasks.submission import accept
from windlass.shared.actors.payloads import PAYLOADS
from windlass.shared.actors.task_options import OPTIONS
from windlass.shared.settings import Settings

# Actors


@pytest.mark.parametrize(
    ("actor", "payload", "expected"),
    [
        ("summarize", {"content": "long"}, ("openrouter", 120, 3600)),
        ("agent", {"subagent_type": "demo", "prompt": "do"}, ("local", 1800, None)),
    ],
)
def test_each_actor_has_its_defaults(actor: str, payload: dict[str, Any], expected: tuple[Any, ...]) -> None:
    task = accepted({"actor": actor, "payload": payload})
    assert (task.provider, task.timeout_seconds, task.max_age_seconds) == expected


def test_media_has_no_default_provider_and_says_which_there_are() -> None:
    body = {"actor": "media", "payload": {"action": "txt2img", "prompt": "a lighthouse"}}
    problem = refused(body)
    assert (problem.status, problem.code) == (422, "provider-required")
    assert pointers(problem) == {"/provider"}
    assert "leonardo, midjourney" in problem.detail
    task = accepted({**body, "provider": "leonardo"})
    assert (task.provider, task.timeout_seconds, task.max_age_seconds) == ("leonardo", 900, None)


def test_a_provider_takes_the_tasks_of_each_of_its_actors_and_says_whose_it_takes() -> None:
    both = Settings(providers={"both": {"actors": ["summarize", "probe"]}})
    for actor, payload in (("probe", {}), ("summarize", {"content": "x"})):
        assert accepted({"actor": actor, "payload": payload, "provider": "both"}, settings=both).provider == "both"
    problem = refused({"actor": "agent", "payload": {}, "provider": "both"}, settings=both)
    assert (problem.status, pointers(problem)) == (422, {"/provider"})
    assert "both serves summarize, probe; choose one of: local" in problem.errors[0]["detail"]  # type: ignore[index]


def test_a_provider_of_another_actor_is_refused() -> None:
    problem = refused({"actor": "summarize", "payload": {"content": "x"}, "provider": "leonardo"})
    assert (problem.code, pointers(problem)) == ("unknown-provider", {"/provider"})
    assert "openrouter" in problem.detail


def test_a_media_task_is_found_by_its_run_and_interaction() -> None:
    payload = {"action": "txt2img", "prompt": "x", "workflow_run_id": "run", "interaction_id": "talk"}
    task = accepted({"actor": "media", "provider": "leonardo", "payload": payload})
    assert (task.workflow_run_id, task.interaction_id, task.payload) == ("run", "talk", payload)


@pytest.mark.parametrize(
    ("actor", "payload", "pointer"),
    [
        ("summarize", {}, "/payload/content"),
        ("summarize", {"content": ""}, "/payload/content"),
        ("summarize", {"content": "x", "max_words": 0}, "/payload/max_words"),
        ("media", {"action": "txt2song", "prompt": "x"}, "/payload/action"),
        ("media", {"action": "txt2img"}, "/payload/prompt"),
        ("media", {"action": "img2vid", "prompt": "x"}, "/payload/source_image"),
        ("agent", {"prompt": "x"}, "/payload/subagent_type"),
        ("agent", {"subagent_type": "a", "prompt": "x", "command": ["sh"]}, "/payload/command"),
        ("agent", {"subagent_type": "a", "prompt": "x", "limits": {"memory_mb": 0}}, "/payload/limits/memory_mb"),
    ],
)
def test_each_actor_s_payload_is_checked(actor: str, payload: dict[str, Any], pointer: str) -> None:
    problem = refused({"actor": actor, "provider": "leonardo" if actor == "media" else None, "payload": payload})
    assert (problem.status, problem.code) == (422, "invalid-payload")
    assert pointers(problem) == {pointer}


# Shortcuts


@pytest.mark.parametrize("actor", sorted(PAYLOADS))
def test_no_field_of_a_payload_is_called_as_a_field_of_the_task(actor: str) -> None:
    assert not OPTIONS & PAYLOADS[actor].model_fields.keys()


def test_a_shortcut_makes_the_same_task() -> None:
    whole = {"actor": "summarize", "priority": 1, "tags": ["t"], "payload": {"content": "long", "max_words": 5}}
    short = {"content": "long", "max_words": 5, "priority": 1, "tags": ["t"]}
    made = accept(short, USER, SETTINGS, ACTORS, shortcut_for="summarize")
    assert made == msgspec.structs.replace(accepted(whole), task_id=made.task_id)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/content"),
        ({"content": "x", "max_words": 0}, "/max_words"),
        ({"content": "x", "priority": 99}, "/priority"),
        ({"content": "x", "surprise": 1}, "/surprise"),
        ({"content": "x", "payload": {}}, "/payload"),
        ({"content": "x", "actor": "agent"}, "/actor"),
    ],
)
def test_in_a_shortcut_the_fields_are_named_where_they_stand(body: dict[str, Any], pointer: str) -> None:
    with pytest.raises(Problem) as problem:
        accept(body, USER, SETTINGS, ACTORS, shortcut_for="summarize")
    assert pointers(problem.value) == {pointer}


AGENTS = Settings(agents={"slow": {"command": ("true",), "timeout_seconds": 600}})


@pytest.mark.parametrize(
    ("agent", "asked", "given"),
    [("slow", None, 600), ("slow", 60, 60), ("slow", 3600, 600), ("demo", None, 1800), ("demo", 3600, 3600)],
)
def test_an_agent_s_own_timeout_is_its_tasks_default_and_the_most_that_they_get(
    agent: str, asked: float | None, given: float
) -> None:
    body = {"actor": "agent", "payload": {"subagent_type": agent, "prompt": "p"}, "timeout_seconds": asked}
    assert accepted(body, settings=AGENTS).timeout_seconds == given


def test_an_unknown_agent_is_named_with_those_that_are_known() -> None:
    problem = refused({"actor": "agent", "payload": {"subagent_type": "x", "prompt": "p"}}, settings=AGENTS)
    assert pointers(problem) == {"/payload/subagent_type"}
    assert "there are demo, slow" in str(problem.errors)
