"""Workflows as Python writes them: what `|`, `group` and the builder make of actors, results and elements."""

from typing import Any

import pytest
from pydantic import BaseModel

from windlass import INDEX, ITEM, Client, Context, actor, group, literal, signature, text
from windlass.client.workflows.building import Writing
from windlass.client.workflows.composing import Composition
from windlass.client.workflows.graph import Graph, documents_of
from windlass.client.workflows.references import Reference


class Letter(BaseModel):
    body: str
    stamp: str = "plain"


@actor
def fetch(*, context: Context) -> str:
    return str(context.task_id)


@actor
def translate(text: str, to: str = "en") -> str:
    return f"{text} in {to}"


@actor
def join_all(texts: list[str], glue: str = " ") -> str:
    return glue.join(texts)


@actor
def post(letter: Letter) -> str:
    return letter.body


def edges(composition: Composition) -> dict[str, list[Any]]:
    return {each["key"]: each.get("depends_on", []) for each in documents_of(composition)}


def test_one_after_the_other_gets_what_the_one_before_returned() -> None:
    first, second, third = documents_of(fetch | translate.s(to="de") | post)
    assert first == {"key": "fetch", "actor": "fetch", "payload": {}}
    assert second == {
        "key": "translate", "actor": "translate", "payload": {"to": "de", "text": {"$from": "fetch"}},
        "depends_on": ["fetch"],
    }  # fmt: skip
    assert third["payload"] == {"body": {"$from": "translate"}}, "a model's own field"


def test_who_wants_nothing_more_is_only_put_behind() -> None:
    _, second = documents_of(fetch | translate.s("hi"))
    assert (second["payload"], second["depends_on"]) == ({"text": "hi"}, ["fetch"])


def test_a_group_is_joined_by_a_list_in_its_order() -> None:
    *_, join = documents_of(fetch | group([translate, translate.s(to="fr"), signature("probe")]) | join_all)
    assert join["payload"] == {"texts": [{"$from": "translate"}, {"$from": "translate-2"}, {"$from": "probe"}]}
    assert join["depends_on"] == ["translate", "translate-2", "probe"]


def test_a_task_in_two_chains_is_one_task() -> None:
    top = fetch.s()
    assert edges(group([top | translate, top | translate]) | join_all) == {
        "fetch": [], "translate": ["fetch"], "translate-2": ["fetch"], "join-all": ["translate", "translate-2"],
    }  # fmt: skip


def test_options_keys_and_questions_are_set_on_a_task() -> None:
    asked = translate.s("hi").set(key="de", priority=1, approval="Shall it?", timeout_seconds=None)
    (document,) = documents_of(asked)
    assert document == {
        "key": "de", "actor": "translate", "payload": {"text": "hi"}, "priority": 1,
        "approval": {"message": "Shall it?"},
    }  # fmt: skip


def written(*, name: str = "report") -> Writing:
    return Writing(name, {})


def documents(flow: Writing) -> dict[str, Any]:
    return {each["key"]: each for each in flow._graph.documents()}


def test_results_stand_in_payloads_and_make_the_edges() -> None:
    flow = written()
    draft = flow.task("summarize", {"content": "…"}, key="draft")
    other = flow.task("summarize", {"content": "…"})
    review = flow.task(
        "agent",
        {
            "prompt": text("Review ", draft.result["summary"], " of ", other.result),
            "params": [draft.result["parts"][0], draft.result["a/b~c"], draft.result.get("title", None)],
            "as it is": literal({"$from": "nobody"}),
        },
    )
    last = flow.task("probe", depends_on=[review.ended, "0194-id"], tags=["last"])
    assert last.key == "probe"
    said = documents(flow)
    assert said["agent"]["payload"] == {
        "prompt": {"$text": ["Review ", {"$from": "draft", "path": "/summary"}, " of ", {"$from": "summarize"}]},
        "params": [
            {"$from": "draft", "path": "/parts/0"},
            {"$from": "draft", "path": "/a~1b~0c"},
            {"$from": "draft", "path": "/title", "default": None},
        ],
        "as it is": {"$literal": {"$from": "nobody"}},
    }
    assert said["agent"]["depends_on"] == ["draft", "summarize"]
    assert said["probe"]["depends_on"] == [{"key": "agent", "on": "ended"}, "0194-id"]


def test_one_for_each_names_its_list_and_its_element() -> None:
    flow = written()
    split = flow.task("probe", {"result": [1]}, key="split")
    pages = flow.task(
        translate,
        text=text(INDEX, ": ", ITEM["what"], split.result["title"]),
        for_each=split.result["echo"],
        key="pages",
        priority=1,
    )
    flow.task(join_all, texts=pages.result)
    said = documents(flow)
    assert said["pages"] == {
        "key": "pages", "actor": "translate", "priority": 1,
        "payload": {
            "text": {
                "$text": [
                    {"$index": True}, ": ", {"$item": True, "path": "/what"}, {"$from": "split", "path": "/title"},
                ]
            }
        },
        "for_each": {"$from": "split", "path": "/echo"},
    }  # fmt: skip
    assert said["join-all"]["depends_on"] == ["pages"]


def test_compositions_are_parts_of_a_written_workflow() -> None:
    flow = written()
    draft = flow.task("probe", key="draft")
    chain = flow.add(translate.s(draft.result) | post)
    flow.task("probe", {"result": chain.outcome})
    assert {key: each.get("depends_on") for key, each in documents(flow).items()} == {
        "draft": None, "translate": ["draft"], "post": ["translate"], "probe": ["post"],
    }  # fmt: skip


@pytest.mark.parametrize(
    "use", [str, "{}".format, bool, list, lambda each: "a" in each], ids=["str", "format", "bool", "list", "in"]
)
def test_a_value_that_is_not_there_cannot_be_used_as_one(use: Any) -> None:
    with pytest.raises(TypeError):
        use(signature("probe").result)


def test_what_is_wrong_is_said_while_it_is_written() -> None:
    here, elsewhere = written(), written()
    stranger = elsewhere.task("probe", key="stranger")
    here.task("probe", key="a")
    with pytest.raises(ValueError, match="the key a is there twice"):
        here.task("probe", key="a")
    here.task("probe", {"result": stranger.result})
    with pytest.raises(ValueError, match="<task stranger> is referred to, and is not in this workflow"):
        documents(here)
    with pytest.raises(TypeError, match="for_each takes a list out of a result"):
        here.task("probe", for_each=[1, 2])
    with pytest.raises(TypeError, match="and 5 is neither"):
        text("a", 5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a number from 0 on"):
        stranger.result[-1]
    with pytest.raises(ValueError, match="a group of nothing"):
        group([])
    with pytest.raises(TypeError, match=r"say signature\('probe'\)"):
        fetch | "probe"  # type: ignore[operator]


def test_an_error_in_the_block_submits_nothing() -> None:
    with Client("http://127.0.0.1:9", "wl_key", patience=0) as client:  # where nobody listens
        flow = client.workflow("report")
        with pytest.raises(TypeError, match="a number from 0 on"), flow:
            flow.task("probe").result[-1]
        with pytest.raises(RuntimeError, match="not submitted before the end"):
            _ = flow.workflow


def test_every_reference_says_what_it_stands_for() -> None:
    kinds: list[Reference] = [signature("probe", key="draft").result["a"], ITEM["b"], INDEX, text("c"), literal(1)]
    assert [repr(each) for each in kinds] == [
        "<the result of draft/a>", "<the element/b>", "<the number of the element>", "<a text of 1 pieces>",
        "<a literal>",
    ]  # fmt: skip
    assert Graph().free_key("probe") == "probe"
