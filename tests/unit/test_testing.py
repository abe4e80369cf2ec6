"""`windlass.testing` without servers: the same rules as in a worker, and an accident wherever a test wants one."""

import asyncio
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from tests.support.blocked_packages import OF_THE_SERVER, run_without
from windlass import Context
from windlass import actor as declared_actor
from windlass.actors import Misdeclared
from windlass.shared.actors.new_task import NewTask
from windlass.shared.actors.stopped import Stopped
from windlass.shared.actors.task_options import OPTIONS
from windlass.shared.errors import InvalidInput, InvalidStep, RateLimited, ResultTooLarge, TimedOut
from windlass.testing import Crashed, Misused, NotCompleted, attempt

Actor = Callable[..., Any]
calls: list[str] = []


def call_model(text: str) -> str:
    calls.append(text)
    return f"<{text}>"


async def ask_model(text: str) -> str:
    await asyncio.sleep(0)
    return call_model(text)


def translate(text: str, to: str = "en", *, context: Any) -> str:
    draft = context.step("draft", call_model, text)
    context.progress("Polishing", percent=60)
    polished: str = context.step("polish", call_model, draft + to)
    return polished


async def translate_async(text: str, to: str = "en", *, context: Any) -> str:
    draft = await context.step("draft", ask_model, text)
    context.progress("Polishing", percent=60)
    await context.sleep(60)
    polished: str = await context.step("polish", ask_model, draft + to)
    return polished


@pytest.fixture(autouse=True)
def nothing_called() -> None:
    calls.clear()


both = pytest.mark.parametrize("actor", [translate, translate_async])


@both
def test_a_run_has_its_result_steps_and_events(actor: Actor) -> None:
    with attempt(actor, text="hi") as run:
        assert run.result == "<<hi>en>"
        assert [(step.name, step.attempt, step.result) for step in run.steps] == [
            ("draft", 1, "<hi>"),
            ("polish", 1, "<<hi>en>"),
        ]
        assert [event["type"] for event in run.events] == ["claim", "step", "progress", "step", "complete"]
        assert run.status == "completed"


@both
def test_after_a_crash_no_finished_step_runs_again(actor: Actor) -> None:
    with attempt(actor, text="hi") as run:
        run.crash_after("draft")
        assert run.status == "retrying"
        assert isinstance(run.error, Crashed)
        assert run.again().result == "<<hi>en>"
    assert calls == ["hi", "<hi>en"]
    assert [(step.name, step.attempt) for step in run.steps] == [("draft", 1), ("polish", 2)]


@both
def test_a_step_that_was_cut_off_inside_runs_again(actor: Actor) -> None:
    with attempt(actor, text="hi") as run:
        run.crash_inside("draft").again()
        assert run.result == "<<hi>en>"
    assert calls == ["hi", "hi", "<hi>en"]


@both
def test_a_cancel_ends_it_before_the_first_step_or_after_one(actor: Actor) -> None:
    with attempt(actor, text="hi") as run:
        run.cancel()
        assert (run.status, run.steps) == ("cancelled", [])
        run.again().cancel(after="draft")
        assert run.status == "cancelled"
        assert [step.name for step in run.steps] == ["draft"], "what was done is kept"
        with pytest.raises(NotCompleted, match="attempt 2 has left the task cancelled"):
            _ = run.result
        assert run.again().result == "<<hi>en>"
    assert [event["type"] for event in run.events].count("revive") == 2


@both
def test_time_that_is_up_is_a_failure_that_is_tried_again(actor: Actor) -> None:
    with attempt(actor, text="hi") as run:
        run.time_out(after="draft")
        assert run.status == "retrying"
        assert isinstance(run.error, TimedOut)
        assert [step.name for step in run.steps] == ["draft"]


@both
def test_a_worker_that_stops_hands_it_back(actor: Actor) -> None:
    with attempt(actor, text="hi") as run:
        run.stop(after="draft")
        assert run.status == "queued"
        assert run.events[-1]["type"] == "interrupt"


@both
def test_who_lost_its_lease_keeps_nothing_more(actor: Actor) -> None:
    with attempt(actor, text="hi") as run:
        run.lose_lease(after="draft")
        assert isinstance(run.error, Stopped)
        assert [step.name for step in run.steps] == ["draft"]
        assert run.events[-1]["type"] == "stall"


def test_what_a_step_came_to_after_the_lease_was_lost_is_not_kept() -> None:
    def lose(context: Any) -> None:
        context.step("late", lambda: run.lose_lease() and "late")

    with attempt(lose) as run:
        assert run.steps == []
        assert isinstance(run.error, Stopped)


def test_whoever_catches_everything_is_still_dead() -> None:
    def stubborn(context: Any) -> str:
        try:
            context.step("one", lambda: 1)
        except BaseException:  # noqa: BLE001 - that is what is tried
            context.step("two", lambda: 2)
        return "alive"

    with attempt(stubborn) as run:
        run.crash_after("one")
        assert run.status == "retrying"
        assert [step.name for step in run.steps] == ["one"]


def test_an_async_function_is_cancelled_where_it_awaits_something_else() -> None:
    async def patient(context: Any) -> None:
        run.cancel()
        await asyncio.Event().wait()
        context.progress("never")

    with attempt(patient) as run:
        assert run.status == "cancelled"


def test_sleeping_takes_no_time_and_comes_to_the_deadline() -> None:
    def sleep(context: Any) -> None:
        while True:
            context.sleep(60)

    with attempt(sleep, timeout_seconds=3600) as run:
        assert isinstance(run.error, TimedOut)


def test_names_sizes_and_json_are_as_strict_as_in_a_worker() -> None:
    def twice(context: Any) -> None:
        context.step("one", lambda: 1)
        context.step("one", lambda: 1)

    def large(context: Any) -> None:
        context.step("one", lambda: "x" * 1_000_001)

    def no_json(context: Any) -> None:
        context.step("one", object)

    for function, error in [(twice, InvalidStep), (large, ResultTooLarge), (no_json, InvalidStep)]:
        with attempt(function) as run:
            assert isinstance(run.error, error)
            assert run.status == "dead"


def test_a_plain_function_in_an_async_actor_is_refused() -> None:
    async def wrong(context: Any) -> None:
        await context.step("one", call_model, "hi")

    with attempt(wrong) as run:
        assert isinstance(run.error, InvalidStep)
        assert "asyncio.to_thread, call_model" in str(run.error)
    assert calls == []


def test_errors_are_final_if_they_are_declared_so() -> None:
    class Declared:
        name, throws, timeout_seconds = "picky", (ValueError,), 5

        @staticmethod
        def fn(text: str) -> str:
            raise (ValueError if text == "bad" else KeyError)(text)

    with attempt(Declared(), text="bad") as run:
        assert run.status == "dead"
    with attempt(Declared(), text="odd") as run:
        assert run.status == "retrying"
        with pytest.raises(NotCompleted, match="KeyError"):
            _ = run.result


def test_a_payload_that_does_not_fit_is_invalid_input() -> None:
    with attempt(translate, txt="hi") as run:
        assert isinstance(run.error, InvalidInput)
        assert run.status == "dead"


@pytest.mark.parametrize("is_async", [False, True])
def test_children_files_and_checkpoints_are_kept_over_attempts(is_async: bool, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"hello")

    def work(context: Any) -> dict[str, Any]:
        context.save({"seen": (context.checkpoint or {}).get("seen", 0) + 1})
        ids = [context.submit("probe", {"seconds": 1}), context.submit("probe", seconds=2)]
        return {"ids": ids, "file": context.store_file(tmp_path / "file", media_type="text/plain")}

    async def work_async(context: Any) -> dict[str, Any]:
        context.save({"seen": (context.checkpoint or {}).get("seen", 0) + 1})
        ids = [await context.submit("probe", {"seconds": 1}), await context.submit("probe", seconds=2)]
        content_id = await context.store_file(tmp_path / "file", media_type="text/plain")
        await context.step("last", asyncio.sleep, 0)
        return {"ids": ids, "file": content_id}

    with attempt(work_async if is_async else work) as run:
        if is_async:
            run.crash_after("last").again()
        result = run.result
        assert [child["task_id"] for child in run.children] == result["ids"]
        assert [child["payload"] for child in run.children] == [{"seconds": 1}, {"seconds": 2}]
        assert run.files == {result["file"]: b"hello"}
        assert run.checkpoint == {"seen": 2 if is_async else 1}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"prioritty": 1}, "there is no option prioritty; did you mean `priority`?"),
        ({"user_id": "bob"}, "`submit` takes no user_id: a child is its parent's user's"),
    ],
)
def test_what_a_child_is_asked_for_is_checked_as_in_a_worker(options: dict[str, Any], said: str) -> None:
    def work(context: Any) -> None:
        context.submit("probe", {"seconds": 1}, **options)

    with attempt(work) as run:
        assert isinstance(run.error, InvalidInput)
        assert said in str(run.error)
        assert run.children == []


def test_an_error_of_a_step_keeps_its_type() -> None:
    def exhausted(context: Any) -> str:
        try:
            context.step("next", iter([]).__next__)
        except StopIteration:
            return "exhausted"
        return "more"

    with attempt(exhausted) as run:
        assert run.result == "exhausted"


def test_what_has_ended_is_told_so() -> None:
    with attempt(translate, text="hi") as run:
        assert run.result
        with pytest.raises(Misused, match=r"again\(\)"):
            run.cancel()
        with pytest.raises(Misused, match="has completed"):
            run.again()


def test_an_async_test_runs_an_async_function() -> None:
    async def test() -> Any:
        with attempt(translate_async, text="hi") as run:
            return run.result

    assert asyncio.run(test()) == "<<hi>en>"


WITHOUT = """
from windlass import Context, actor
from windlass.testing import attempt

@actor
def count(words: list[str], times: int = 1, *, context: Context) -> int:
    return context.step("count", lambda: len(words) * times)

with attempt(count, words=["a"], times="2") as run:
    print(run.status, run.error or run.result)
"""


def test_it_needs_none_of_the_server_s_packages() -> None:
    assert run_without(OF_THE_SERVER, WITHOUT) == "completed 2\n", "nobody here reads declarations"


def test_with_pydantic_alone_a_payload_is_read_as_a_worker_reads_it() -> None:
    of_pydantic = {"pydantic", "pydantic_core"}
    assert run_without(OF_THE_SERVER - of_pydantic, WITHOUT) == "completed 2\n"
    wrong = WITHOUT.replace('times="2"', 'times="two"')
    said = "count refuses the payload: /times: must be a valid integer, unable to parse string as an integer"
    assert run_without(OF_THE_SERVER - of_pydantic, wrong) == f"dead {said}\n"


@declared_actor
def repeat(text: str, until: date | None = None, times: Annotated[int, Field(ge=1)] = 1, *, context: Context) -> str:
    context.check()
    return f"{text * times} until {until!r}"


class Repeated(BaseModel):
    text: str
    times: int = 1


def repeat_model(wanted: Repeated) -> str:
    return wanted.text * wanted.times


@pytest.mark.parametrize("actor", [repeat, repeat_model])
@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ({"text": 3}, "/text: must be text in quotes"),
        ({"text": "a", "times": "2"}, "/times: must be a whole number"),
        ({"text": "a", "tmies": 2}, "/tmies: there is no such field"),
        ({}, "/text: must be given"),
    ],
)
def test_a_payload_of_another_type_fails_as_it_would_in_production(
    actor: Any, payload: dict[str, Any], said: str
) -> None:
    with attempt(actor, payload) as run:
        assert isinstance(run.error, InvalidInput)
        assert said in str(run.error)
        assert run.status == "dead"


def test_a_payload_is_read_as_it_is_declared() -> None:
    with attempt(repeat, text="a", until=date(2030, 1, 31), times=2) as run:
        assert run.result == "aa until datetime.date(2030, 1, 31)"
    with attempt(repeat, text="a", times=0) as run:
        assert "/times: must be greater than or equal to 1" in str(run.error)
    with attempt(repeat_model, text="a", times=3) as run:
        assert run.result == "aaa"


def test_an_actor_that_is_misdeclared_is_told_so() -> None:
    @declared_actor
    def bare(text) -> str:  # type: ignore[no-untyped-def]
        return str(text)

    with pytest.raises(Misdeclared, match="parameter text has no annotation"), attempt(bare, text="a"):
        pass


def test_the_names_of_a_task_s_own_fields_are_all_of_them() -> None:
    assert NewTask.model_fields.keys() - {"actor", "payload"} == OPTIONS


@declared_actor(max_retries=1)
def flaky(error: str) -> None:
    raise {"late": TimedOut("late"), "full": RateLimited("full"), "bug": ZeroDivisionError("bug")}[error]


@pytest.mark.parametrize(
    ("error", "statuses"),
    [("bug", ["retrying", "dead"]), ("late", ["retrying", "dead"]), ("full", ["retrying", "retrying"])],
)
def test_an_actor_has_as_many_retries_as_it_declares(error: str, statuses: list[str]) -> None:
    with attempt(flaky, error=error) as run:
        assert [run.status, run.again().status] == statuses


def test_a_lost_worker_uses_a_retry_and_a_revival_gives_them_back() -> None:
    with attempt(flaky, error="bug") as run:
        run.lose_lease().again()
        assert run.status == "dead"
        assert run.again().status == "retrying", "a new life"


def test_an_actor_that_declares_nothing_has_three_retries() -> None:
    def fails() -> None:
        raise ZeroDivisionError

    with attempt(fails) as run:
        assert [run.status, *(run.again().status for _ in range(3))] == ["retrying"] * 3 + ["dead"]
