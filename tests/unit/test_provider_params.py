"""What each action takes: declared once, drawn as a schema, and nothing else gets through."""

from typing import Annotated, Any

import pytest
from pydantic import Field

from tests.support.engine.submissions import accepted, pointers, refused
from windlass.shared.providers import leonardo, midjourney
from windlass.shared.providers.params import Params, actions_of, faults_of
from windlass.shared.settings import Settings


class Paper(Params):
    paper: Annotated[str, Field(max_length=5)] | None = None


def submission(provider: str, params: dict[str, Any], action: str = "txt2img") -> dict[str, Any]:
    payload = {"action": action, "prompt": "a lighthouse", "params": params}
    if action != "txt2img":
        payload["source_image"] = "https://pictures.example/a.png"
    return {"actor": "media", "provider": provider, "payload": payload}


def test_a_fault_names_the_parameter_and_those_that_are_allowed() -> None:
    (fault,) = faults_of("atelier", {"txt2img": Paper}, "txt2img", {"ink": 1})
    assert fault.path == ("params", "ink")
    assert "allowed: paper" in fault.detail


def test_every_fault_is_told_at_once() -> None:
    faults = faults_of("atelier", {"txt2img": Paper}, "txt2img", {"ink": 1, "paper": "smooth"})
    assert [fault.path for fault in faults] == [("params", "ink"), ("params", "paper")]


def test_an_action_that_it_does_not_do_is_named() -> None:
    (fault,) = faults_of("atelier", {"txt2img": Paper}, "img2vid", {"ink": 1})
    assert (fault.path, "it does txt2img" in fault.detail) == (("action",), True)


def test_an_adapter_that_declares_nothing_takes_every_action_and_no_parameters() -> None:
    assert faults_of("atelier", actions_of(object()), "img2vid", {}) == []
    (fault,) = faults_of("atelier", actions_of(object()), "img2vid", {"ink": 1})
    assert fault.path == ("params", "ink")


@pytest.mark.parametrize("adapter", [leonardo.Adapter, midjourney.Adapter])
def test_each_action_has_a_schema_from_which_a_form_can_be_drawn(adapter: Any) -> None:
    for action in ("txt2img", "img2img", "img2vid"):
        schema = adapter.actions[action].model_json_schema()
        assert (schema["type"], schema["additionalProperties"]) == ("object", False)
        assert schema["properties"]


OVERRIDES = [
    ("leonardo", "txt2img", "init_image_id"),
    ("leonardo", "txt2img", "init_strength"),
    ("leonardo", "img2img", "init_image_id"),
    ("leonardo", "img2img", "controlnets"),
    ("leonardo", "img2vid", "imageId"),
    ("leonardo", "img2vid", "imageType"),
    ("leonardo", "txt2img", "prompt"),
    ("midjourney", "txt2img", "taskType"),
    ("midjourney", "img2img", "fileUrls"),
    ("midjourney", "img2vid", "callBackUrl"),
    ("midjourney", "txt2img", "prompt"),
]


@pytest.mark.parametrize(("provider", "action", "name"), OVERRIDES)
def test_what_windlass_itself_says_to_a_provider_no_client_can_say(provider: str, action: str, name: str) -> None:
    problem = refused(submission(provider, {name: "theirs"}, action))
    assert (problem.status, problem.code) == (422, "invalid-payload")
    assert pointers(problem) == {f"/payload/params/{name}"}
    assert problem.errors is not None
    assert "allowed:" in problem.errors[0]["detail"]


def test_a_value_that_does_not_fit_is_named_too() -> None:
    assert pointers(refused(submission("leonardo", {"width": 513, "seed": "x"}))) == {
        "/payload/params/width",
        "/payload/params/seed",
    }


@pytest.mark.parametrize(
    ("provider", "action", "params"),
    [
        ("leonardo", "txt2img", {"width": 512, "height": 512, "num_images": 1, "guidance_scale": 7, "ultra": True}),
        ("leonardo", "img2img", {"init_strength": 0.4, "enhancePrompt": True}),
        ("leonardo", "img2vid", {"promptEnhance": False, "resolution": "RESOLUTION_720"}),
        ("midjourney", "txt2img", {"speed": "fast", "aspectRatio": "16:9", "version": "7", "stylization": 100}),
        ("midjourney", "img2vid", {"motion": "high", "videoBatchSize": 1}),
    ],
)
def test_what_the_action_knows_is_taken_as_it_is(provider: str, action: str, params: dict[str, Any]) -> None:
    assert accepted(submission(provider, params, action)).payload["params"] == params


def test_an_adapter_that_is_not_to_be_had_here_is_left_to_the_worker() -> None:
    settings = Settings(providers={"atelier": {"actor": "media", "adapter": "nowhere.at_all"}})
    assert accepted(submission("atelier", {"ink": 1}), settings=settings).provider == "atelier"


@pytest.mark.parametrize("url", ["http://xn--a-:9/", "http://a:99999/", "ftp://a/", "a picture", "http://"])
def test_a_source_image_that_nobody_could_fetch_is_named_at_once(url: str) -> None:
    body = submission("leonardo", {"enhancePrompt": True}, "img2img")
    body["payload"]["source_image"] = url
    problem = refused(body)
    assert (problem.status, pointers(problem)) == (422, {"/payload/source_image"})
