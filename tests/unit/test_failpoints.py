"""Failpoints: a call is held or killed at a named moment of it, and a name without its function is an error."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.failpoints.arming import AT_START, PROJECT, Failpoints
from tests.support.failpoints.catalogue import (
    CATALOGUE,
    OF_MEDIA,
    OF_THE_LONER,
    OF_WEBHOOKS,
    PIPELINE,
    Failpoint,
    Moment,
)
from tests.support.failpoints.injection import NotThere, Place, located, wrapped
from tests.support.waiting import wait_until


@pytest.mark.parametrize("failpoint", CATALOGUE, ids=lambda each: f"{each.name} {each.function}")
def test_the_product_has_the_function_of_each_failpoint(failpoint: Failpoint) -> None:
    owner, name, function = located(failpoint)
    assert getattr(owner, name) is function


def test_each_failpoint_is_in_one_list_of_the_drills() -> None:
    lists = Counter((*OF_MEDIA, *OF_WEBHOOKS, *PIPELINE, *OF_THE_LONER))
    assert set(lists.values()) == {1}
    assert set(lists) == {each.name for each in CATALOGUE}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"module": "windlass.services.actors.worker.mirror", "function": "StateMirror.gone"}, "no function"),
        (
            {"module": "windlass.services.actors.worker.mirror", "function": "Gone.before_process_message"},
            "no function",
        ),
        (
            {"module": "windlass.services.actors.worker.executor", "function": "fitting", "moment": Moment.OVER},
            "no corou",
        ),
        (
            {"module": "windlass.services.actors.worker.executor", "function": "to_its_end", "may_wait": False},
            "may wait",
        ),
    ],
)
def test_a_function_that_is_not_there_or_has_changed_its_kind_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(NotThere, match=words):
        located(replace(CATALOGUE[0], **change))


def test_a_worker_that_cannot_have_its_failpoints_does_not_start() -> None:
    environment = {**os.environ, "PYTHONPATH": f"{AT_START}:{PROJECT}"}  # and no directory
    worker = [sys.executable, "-m", "windlass.services.actors.main", "0", "0", "shared"]
    ended = subprocess.run(worker, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode != 0
    assert "FAILPOINTS_DIRECTORY" in ended.stderr
    assert "cannot be injected" in ended.stderr


def test_the_first_call_is_held_until_it_is_let_go_and_no_other_is(tmp_path: Path) -> None:
    failpoints, calls = Failpoints(tmp_path), list[str]()

    def step(*, word: str) -> None:
        calls.append(word)

    call = at("thread-entered", step, tmp_path)
    failpoints.hold("thread-entered")
    first = threading.Thread(target=call, kwargs={"word": "first"}, daemon=True)
    first.start()
    failpoints.wait_until_held("thread-entered")
    call(word="second")
    assert calls == ["second"]
    failpoints.let_all_go()
    first.join(60)
    assert calls == ["second", "first"]


@pytest.mark.parametrize("moment", Moment)
def test_other_tasks_of_a_loop_go_on_while_a_coroutine_is_held(tmp_path: Path, moment: Moment) -> None:
    failpoints, story = Failpoints(tmp_path), list[str]()

    async def step() -> None:
        story.append("stepped")

    call = at("loop-entered", step, tmp_path, moment=moment)
    failpoints.hold("loop-entered")

    async def on_a_loop() -> None:
        held = asyncio.create_task(call())
        await asyncio.to_thread(failpoints.wait_until_held, "loop-entered")
        assert story == ([] if moment is Moment.BEFORE else ["stepped"])
        assert not held.done()
        failpoints.let_all_go()
        await held
        assert story == ["stepped"]

    asyncio.run(on_a_loop())


@pytest.mark.parametrize(("moment", "is_reached"), [(Moment.RETURNED, False), (Moment.OVER, True)])
def test_a_call_that_raises_is_over_and_has_not_returned(tmp_path: Path, moment: Moment, *, is_reached: bool) -> None:
    failpoints = Failpoints(tmp_path)

    async def fail() -> None:
        raise ValueError("as always")

    call = at("loop-over", fail, tmp_path, moment=moment)
    failpoints.hold("loop-over")

    async def on_a_loop() -> None:
        failing = asyncio.create_task(call())
        if is_reached:
            await asyncio.to_thread(failpoints.wait_until_held, "loop-over")
            failpoints.let_all_go()
        with pytest.raises(ValueError, match="as always"):
            await failing

    asyncio.run(on_a_loop())


def test_where_the_caller_may_not_wait_the_call_is_made_later(tmp_path: Path) -> None:
    failpoints, calls = Failpoints(tmp_path), list[str]()
    call = at("loop-granted", calls.append, tmp_path, may_wait=False)
    failpoints.hold("loop-granted")
    call("held")
    call("at once")
    assert calls == ["at once"]
    failpoints.let_all_go()
    wait_until("it is made", lambda: calls == ["at once", "held"])


def test_only_the_chosen_calls_reach_it(tmp_path: Path) -> None:
    failpoints, calls = Failpoints(tmp_path), list[str]()
    call = at("thread-judged", calls.append, tmp_path, may_wait=False, only=lambda word: word == "chosen")
    failpoints.hold("thread-judged")
    call("another")
    call("chosen")
    assert calls == ["another"]
    failpoints.let_all_go()
    wait_until("it is made", lambda: calls == ["another", "chosen"])


def test_a_process_is_killed_where_it_is_to_be(tmp_path: Path) -> None:
    Failpoints(tmp_path).kill("media-ordered")
    come_by = (
        "from pathlib import Path; from tests.support.failpoints.injection import Place;"
        f" Place(Path({str(tmp_path)!r}), 'media-ordered').holds()"
    )
    ended = subprocess.run([sys.executable, "-c", come_by], cwd=PROJECT, check=False, timeout=120)
    assert ended.returncode == -signal.SIGKILL
    assert not list(tmp_path.iterdir()), "it is spent"


def at(name: str, function: Any, directory: Path, **fields: Any) -> Any:
    """The function as it is with a failpoint of these fields: before each call unless they say otherwise."""
    failpoint = Failpoint(name, **{"moment": Moment.BEFORE, "module": "", "function": "", **fields})
    return wrapped(function, failpoint, Place(directory, name))
