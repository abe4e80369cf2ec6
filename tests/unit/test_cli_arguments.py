"""How the command line reads what people type, and shows what the API says."""

import argparse
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from windlass.services.cli.commands.arguments import chosen_filter
from windlass.services.cli.commands.providers import wanted_change
from windlass.services.cli.commands.submit import options
from windlass.services.cli.display.tables import Table
from windlass.services.cli.display.texts import age, clean, compact, duration
from windlass.services.cli.main import build_parser

ID = "01890000-0000-7000-8000-000000000001"


def parse(*arguments: str) -> argparse.Namespace:
    return build_parser().parse_args(arguments)


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as leaving:
        parse(*arguments)
    assert leaving.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("n=5", 5),
        ("n=2.5", 2.5),
        ("n=true", True),
        ("n=null", None),
        ("n=[1, 2]", [1, 2]),
        ('n={"a": 1}', {"a": 1}),
        ("n=a hat", "a hat"),
        ('n="5"', "5"),
        ("n=", ""),
        ("n=a=b", "a=b"),
    ],
)
def test_a_field_is_json_where_possible_and_else_a_text(typed: str, value: Any) -> None:
    assert parse("submit", "probe", typed).fields == [("n", value)]


def test_options_are_named_as_the_api_names_them() -> None:
    given = options(
        parse(
            "submit", "probe", "--provider", "p", "--type", "t", "--priority", "critical", "--max-retries", "0",
            "--timeout", "1", "--max-age", "2", "--delay", "3", "--tag", "a", "--tag", "b", "--project", "c",
            "--workflow", "d", "--parent", ID, "--after", ID, "--after-end", ID, "--approval", "go?",
            "--dedupe-key", "k", "--dedupe-ttl", "4",
            "--webhook-url", "http://e", "--user", "f",
        )
    )  # fmt: skip
    assert given == {
        "provider": "p", "task_type": "t", "priority": 0, "max_retries": 0, "timeout_seconds": 1, "max_age_seconds": 2,
        "delay_seconds": 3, "tags": ["a", "b"], "project_id": "c", "workflow_id": "d", "parent_task_id": ID,
        "depends_on": [ID, {"key": ID, "on": "ended"}], "approval": {"message": "go?", "expires_in_seconds": None},
        "dedupe_key": "k", "dedupe_ttl_seconds": 4, "webhook_url": "http://e", "user_id": "f",
    }  # fmt: skip
    assert options(parse("submit", "probe")) == {}


def test_filters_are_named_as_the_api_names_them() -> None:
    given = chosen_filter(
        parse(
            "list", "--status", "dead", "--status", "retrying", "--actor", "a", "--provider", "b", "--lane", "retry",
            "--user", "c", "--tag", "d", "--project", "e", "--workflow", "f", "--workflow-run", "g", "--interaction",
            "h", "--parent", ID, "--error-type", "i", "--created-after", "2026-07-01T12:00Z", "--search", "j",
        )
    )  # fmt: skip
    assert given == {
        "status": ["dead", "retrying"], "actor": "a", "provider": "b", "lane": "retry", "user_id": "c", "tag": ["d"],
        "project_id": "e", "workflow_id": "f", "workflow_run_id": "g", "interaction_id": "h", "parent_task_id": ID,
        "error_type": "i", "created_after": datetime(2026, 7, 1, 12, tzinfo=UTC), "q": "j",
    }  # fmt: skip
    assert chosen_filter(parse("dlq", "revive", "--error-type", "X", "--canary", "5")) == {"error_type": "X"}


def test_only_what_is_given_is_changed_at_a_provider() -> None:
    assert wanted_change(parse("providers", "set", "x", "--limit", "3", "--pause")) == {"limit": 3, "paused": True}
    assert wanted_change(parse("providers", "set", "x", "--resume", "--breaker", "auto")) == {
        "paused": False,
        "breaker": "auto",
    }
    back = wanted_change(parse("providers", "set", "x", "--limit", "default", "--rate", "default"))
    assert back == {"limit": None, "rate": None}
    assert wanted_change(parse("providers", "set", "x", "--limit", "0", "--rate", "10/60")) == {
        "limit": 0,
        "rate": {"limit": 10, "per_seconds": 60},
    }


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("get", "abc"), "is not the id of a task"),
        (("submit", "probe", "seconds"), "is not NAME=VALUE"),
        (("submit", "probe", "--payload", "[1]"), "a payload is a JSON object"),
        (("submit", "probe", "--payload", "{"), "not JSON"),
        (("submit", "probe", "--payload", "@/no/such/file"), "cannot read /no/such/file"),
        (("submit", "probe", "--priority", "urgent"), "is neither 0 to 9 nor one of critical"),
        (("submit", "probe", "--delay", "-1"), "is not a number of seconds"),
        (("submit", "probe", "--delay", "nan"), "is not a number of seconds"),
        (("submit", "probe", "--at", "soon"), "is not a time like"),
        (("submit", "probe", "--wait", "--watch"), "not allowed with"),
        (
            ("list", "--status", "ded"),
            "'ded' is not one of blocked, queued, running, retrying, completed, dead, cancelled; did",
        ),
        (("list", "--stats", "dead"), "there is no option --stats; did you mean `--status`?"),
        (("lst",), "windlass: there is no command 'lst'; did you mean `list`?"),
        (("keys", "creat"), "windlass keys: there is no command 'creat'; did you mean `create`?"),
        (("health", "all"), "'all' is one word too many"),
        (("--output", "json"), "the following arguments are required: COMMAND; `windlass --help` shows how"),
        (("list", "--limit", "0"), "is not a number from 1 on"),
        (("providers", "set", "x", "--limit", "many"), "is neither a number from 0 on"),
        (("providers", "set", "x", "--rate", "fast"), "is not like 10/60"),
        (("providers", "set", "x", "--rate", "10/1.5"), "is not like 10/60"),
        (("keys", "create"), "the following arguments are required: --user"),
    ],
)
def test_a_mistake_is_explained(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str) -> None:
    said = refusal(capsys, *arguments)
    assert words in said
    assert said.count("\n") == 1, "one line, and no list of everything"


def test_fields_and_options_come_in_any_order() -> None:
    mixed = parse("submit", "--tag", "a", "probe", "--wait", "steps=3", "--delay", "1", "seconds=2")
    assert (mixed.actor, mixed.fields, mixed.tags) == ("probe", [("steps", 3), ("seconds", 2)], ["a"])
    assert (mixed.wait, mixed.delay_seconds) == (True, 1)


def every_parser(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from every_parser(below)


@pytest.mark.parametrize("parser", list(every_parser(build_parser())), ids=lambda parser: parser.prog)
def test_every_help_has_an_example_that_is_understood(parser: argparse.ArgumentParser) -> None:
    """Of its own command, in a line that somebody could type."""
    _, _, example = parser.format_help().partition("\nexample:\n  ")
    line, _, _ = example.strip().partition(" > ")
    words = [word for word in shlex.split(line) if not word.startswith("WINDLASS_")]
    assert " ".join(words).startswith(parser.prog)
    parse(*words[1:])


def test_where_the_api_is_can_be_said_before_and_after_the_command() -> None:
    before, after = parse("--url", "http://a", "dlq", "revive"), parse("dlq", "revive", "--url", "http://a")
    assert before.url == after.url == "http://a"
    assert not hasattr(parse("list"), "url")


def test_the_help_tells_what_the_exit_codes_mean() -> None:
    text = build_parser().format_help()
    for code in ("0 ", "1 ", "2 ", "3 ", "4 ", "5 ", "6 ", "130"):
        assert f"\n  {code}" in text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59.9, "59s"), (60, "1m00s"), (192, "3m12s"), (7500, "2h05m"), (86400 * 12 + 3 * 3600, "12d03h")],
)
def test_durations_are_told_to_two_places(seconds: float, text: str) -> None:
    assert duration(seconds) == text
    now = datetime(2026, 7, 1, tzinfo=UTC)
    assert age(now - timedelta(seconds=seconds), now) == text


def test_texts_of_strangers_hold_nothing_that_a_terminal_obeys() -> None:
    assert clean("a\x1b[31mred\x07\r\n\tb\u202e") == "a [31mred b"
    assert compact({"a": "é\x1b\u202e\n"}) == r'{"a": "é\u001b\u202e\n"}'


def test_a_plain_table_is_tab_separated() -> None:
    table = Table(("A", "B"), [("1", ""), ("2", "x y")], empty="nothing")
    assert table.plain() == "A\tB\n1\t\n2\tx y\n"
