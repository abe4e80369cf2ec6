"""A mistake in the settings is told with the file, the table and the key, and with what would be right."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
from pydantic import BaseModel

from windlass.shared.retry_delays import Curve
from windlass.shared.settings import Settings
from windlass.shared.settings.loading import WrongSettings, load_settings, settings_or_exit
from windlass.shared.settings.variables import NOT_SETTINGS

ROOT = Path(__file__).parents[2]

THERE_ARE = "there are agent, embed, media, probe, summarize, webhook"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "windlass.toml"
    monkeypatch.setenv("WINDLASS_CONFIG", str(path))
    return path


def mistakes() -> list[str]:
    with pytest.raises(WrongSettings) as refused:
        load_settings()
    return refused.value.mistakes


def mistakes_in(config: Path, text: str) -> list[str]:
    """Without the file's name, which every line begins with."""
    config.write_text(text)
    lines = mistakes()
    assert all(line.startswith(f"{config}: ") for line in lines), lines
    return [line.removeprefix(f"{config}: ") for line in lines]


def tables(model: type[BaseModel] = Settings, below: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Every table and key that there can be, as `providers.anybody` and `limit`."""
    for name, field in model.model_fields.items():
        key = str(field.alias or name)
        yield ".".join(below), key
        for kind in _within(field.annotation):
            if get_origin(kind) is dict and issubclass(get_args(kind)[1], BaseModel):
                somebody = "probe" if name == "actors" else "anybody"
                yield from tables(get_args(kind)[1], (*below, key, somebody))
            elif isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from tables(kind, (*below, key))


def _within(kind: Any) -> list[Any]:
    if get_origin(kind) in {dict, tuple} or not get_args(kind):
        return [kind]
    return [below for each in get_args(kind) for below in _within(each)]


def with_a_wrong_letter(word: str) -> str:
    middle = len(word) // 2
    return f"{word[:middle]}{'x' if word[middle] != 'x' else 'y'}{word[middle + 1 :]}"


EVERY_KEY = sorted(set(tables()))
EVERY_VARIABLE = sorted({*(f"WINDLASS_{name.upper()}" for name in Settings.model_fields), *NOT_SETTINGS})


def test_the_keys_of_every_table_are_put_to_the_test() -> None:
    found = {table for table, _ in EVERY_KEY}
    assert {
        "",
        "network",
        "lanes",
        "defaults",
        "retries",
        "retries.ServiceUnavailable",
        "actors.probe.retries",
    } <= found
    assert {"providers.anybody.rate", "agents.anybody.limits", "agents.anybody.retries.other"} <= found
    assert {key for table, key in EVERY_KEY if table == "retries.WorkerLost"} == set(Curve.model_fields)


@pytest.mark.parametrize(("table", "key"), EVERY_KEY)
def test_a_wrong_letter_in_a_key_is_told_with_its_place_and_the_right_one(config: Path, table: str, key: str) -> None:
    wrong = with_a_wrong_letter(key)
    found = mistakes_in(config, f"[{table}]\n{wrong} = 1\n" if table else f"{wrong} = 1\n")
    place = f"[{table}] {wrong}" if table else wrong
    assert f"{place}: there is no such key; did you mean `{key}`?" in found


@pytest.mark.parametrize("table", ["providers", "agents", "actors", "retries", "lanes", "defaults", "network"])
def test_a_wrong_letter_in_a_table_s_name_is_told_with_the_right_one(config: Path, table: str) -> None:
    wrong = with_a_wrong_letter(table)
    (found,) = mistakes_in(config, f"[{wrong}.somebody]\nlimit = 1\n")
    assert found == f"[{wrong}]: there is no such table; did you mean `{table}`?"


@pytest.mark.parametrize("name", EVERY_VARIABLE)
def test_a_wrong_letter_in_a_variable_is_told_with_the_right_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = f"WINDLASS_{with_a_wrong_letter(name.removeprefix('WINDLASS_'))}"
    monkeypatch.setenv(wrong, "1")
    assert mistakes() == [f"{wrong}: there is no such setting; did you mean `{name}`?"]


def test_a_variable_like_none_of_ours_is_refused_and_the_page_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDLASS_ZZZZ", "1")
    assert mistakes() == ["WINDLASS_ZZZZ: there is no such setting; docs/settings.md has them all"]


def test_variables_that_mean_something_to_others_are_let_be(monkeypatch: pytest.MonkeyPatch) -> None:
    from_kubernetes = {
        "WINDLASS_API_SERVICE_HOST": "10.0.0.1",
        "WINDLASS_API_SERVICE_PORT_HTTP": "8800",
        "WINDLASS_API_PORT": "tcp://10.0.0.1:8800",
        "WINDLASS_API_PORT_8800_TCP_ADDR": "10.0.0.1",
    }
    for name, value in {**dict.fromkeys(NOT_SETTINGS, "1"), **from_kubernetes, "WINDLASS_TEST_ANYTHING": "1"}.items():
        monkeypatch.setenv(name, value)
    assert load_settings() == Settings()


def test_what_compose_and_its_scripts_read_is_known() -> None:
    files = [*ROOT.glob("deploy/*.yaml"), *ROOT.glob("deploy/*.sh"), ROOT / "Makefile"]
    read = {name for file in files for name in re.findall(r"\bWINDLASS_[A-Z_]+\b", file.read_text())}
    assert read - set(EVERY_VARIABLE) == set()


def test_a_missing_file_is_one_sentence(config: Path) -> None:
    assert mistakes() == [f"WINDLASS_CONFIG names {config}, and there is no such file"]


def test_a_file_that_cannot_be_read_is_one_sentence(config: Path) -> None:
    config.mkdir()
    assert mistakes() == [f"WINDLASS_CONFIG names {config}, which cannot be read: Is a directory"]


def test_a_file_that_is_no_toml_is_one_sentence_with_the_line(config: Path) -> None:
    config.write_text("port = 9000\n[providers.slow\n")
    (found,) = mistakes()
    assert found.startswith(f"{config} is no TOML: ")
    assert "at line 2" in found
    config.write_bytes(b"port = '\xff'")
    assert mistakes() == [f"{config} is no TOML: it is not written in UTF-8"]


def test_a_provider_with_an_unknown_actor_is_refused(config: Path) -> None:
    (found,) = mistakes_in(config, '[providers.slow]\nactor = "sumarize"\n')
    assert found == f"[providers.slow] actor: no actor is called sumarize; {THERE_ARE}"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            'actors = ["probe", "sumarize"]',
            "no actor is called sumarize; there are agent, embed, media, probe, summarize, webhook",
        ),
        ('actors = ["probe", "media", "probe"]', "probe is there twice"),
        ("actors = []", "must name somebody; there are agent, embed, media, probe, summarize, webhook"),
        ('actors = "probe"', "must be a list"),
        ('actor = "probe"\nactors = ["media"]', '`actor` is there as well; leave it out and write ["probe", …]'),
    ],
)
def test_what_is_wrong_with_a_list_of_actors_is_told(config: Path, said: str, expected: str) -> None:
    (found,) = mistakes_in(config, f"[providers.slow]\n{said}\n")
    assert found == f"[providers.slow] actors: {expected}"


def test_a_table_for_an_unknown_actor_is_refused(config: Path) -> None:
    (found,) = mistakes_in(config, "[actors.sumarize]\ntimeout_seconds = 3\n")
    there_are = "no actor is called sumarize; there are agent, embed, media, probe, summarize, webhook"
    assert found == f"[actors.sumarize]: {there_are}; if it is your own, give its `module`"


def test_all_mistakes_are_told_at_once(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDLASS_PROT", "1")
    monkeypatch.setenv("WINDLASS_LEASE_SECONDS", "soon")
    config.write_text('[providers.slow]\nlimit = -1\nrate = {limit = "five", per_seconds = 60}\n[agents.one]\n')
    assert mistakes() == [
        "WINDLASS_PROT: there is no such setting; did you mean `WINDLASS_PORT`?",
        "WINDLASS_LEASE_SECONDS: must be a valid number, unable to parse string as a number",
        f"{config}: [providers.slow] actors: give these, or one as `actor`; {THERE_ARE}",
        f"{config}: [providers.slow] limit: must be greater than or equal to 0",
        f"{config}: [providers.slow.rate] limit: must be a valid integer, unable to parse string as an integer",
        f"{config}: [agents.one] command: must be given",
    ]


def test_a_mistake_in_a_variable_with_tables_is_told_with_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDLASS_PROVIDERS", '{"probe": {"limits": 3}}')
    assert mistakes() == ["WINDLASS_PROVIDERS: probe.limits: there is no such key; did you mean `limit`?"]
    monkeypatch.setenv("WINDLASS_PROVIDERS", "probe")
    assert mistakes() == ['WINDLASS_PROVIDERS: must be JSON, as {"name": {"key": "value"}}']


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("providers = 3\n", "providers: must be a table"),
        ("[providers]\nslow = 3\n", "[providers] slow: must be a table"),
        ('queues = ["probe.probe", 3]\n', "queues[1]: must be a valid string"),
        ("[network]\nallow_private = 1\n", "[network] allow_private: must be a list"),
        (
            "[retries]\nTimedOut = 5\n",
            (
                "[retries] TimedOut: must be a list of seconds, as [5, 10, 30], or a curve, as "
                '{curve = "exponential", base = 2, cap = 300}'
            ),
        ),
        ("[retries]\nTimedOut = [1, -2]\n", "[retries] TimedOut[1]: must be greater than or equal to 0"),
        (
            "[lanes]\nmany_retries = 9000\n",
            "[lanes]: many_retries (9000) must not be more than very_many_retries (5000)",
        ),
    ],
)
def test_what_would_be_right_is_said_in_words(config: Path, text: str, found: str) -> None:
    assert mistakes_in(config, text) == [found]


def test_no_value_is_repeated(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDLASS_API_KEY", "a-secret-of-mine")
    assert "a-secret-of-mine" not in str(mistakes())


def test_a_process_says_each_mistake_on_a_line_of_its_own_and_does_not_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WINDLASS_PORT", "none")
    monkeypatch.setenv("WINDLASS_HOTS", "none")
    with pytest.raises(SystemExit) as ended:
        settings_or_exit()
    assert ended.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(": ")[2].partition(":")[0] for line in lines] == ["WINDLASS_HOTS", "WINDLASS_PORT"]
    assert all(line.startswith("windlass: ") for line in lines)
    assert "WINDLASS_CONFIG" not in os.environ


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (
            '{key = "account", limit = 2}',
            'key: \'account\' is no JSON Pointer; write "/account", or "/customer/account"',
        ),
        (
            '{key = ["/a", "/b~2"], limit = 2}',
            'key: \'/b~2\' is no JSON Pointer; write "/account", or "/customer/account"',
        ),
        ("{key = [], limit = 2}", 'key: must name a place in the payload, as "/account"'),
        ("{key = 7, limit = 2}", "key: must be a list"),
        ('{key = "/account", limit = 0}', "limit: must be greater than or equal to 1"),
        ('{key = "/account"}', "limit: must be given"),
    ],
)
def test_a_mistake_in_a_concurrency_key_is_told_with_its_place(config: Path, said: str, found: str) -> None:
    assert mistakes_in(config, f"[actors.probe]\nconcurrency = {said}\n") == [f"[actors.probe.concurrency] {found}"]
