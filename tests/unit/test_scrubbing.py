"""Secrets in every dress that they are known to wear are taken out; ordinary text stays as it is."""

import logging
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from windlass.shared import scrubbing
from windlass.shared.errors import InvalidInput, describe
from windlass.shared.process.log_lines import TextLines
from windlass.shared.scrubbing import SCRUBBED, redact, scrub, scrub_document, withhold, withhold_label
from windlass.shared.settings import Settings

CANARY = "c4nary" + "Z9" * 12


@pytest.fixture
def configured() -> Iterator[str]:
    secret = "a plain sentence nobody would guess"
    scrubbing.learn([secret])
    yield secret
    scrubbing.learn([])


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Bearer {CANARY}",
        f"authorization: Basic {CANARY}",
        f"Authorization: {CANARY}",
        f"Proxy-Authorization: Digest {CANARY}",
        f"{{'Authorization': 'Bearer {CANARY}', 'Accept': '*/*'}}",
        f"[(b'Authorization', b'Bearer {CANARY}')]",
        f'{{"authorization":"Bearer {CANARY}"}}',
        f"sent Bearer {CANARY} and got 401",
        f"bearer {CANARY}",
        f"x-api-key: {CANARY}",
        f"Cookie: session={CANARY}; theme=dark",
        f"https://user:{CANARY}@example.org/path",
        f"https://{CANARY}@example.org",
        f"postgresql://windlass:{CANARY}@127.0.0.1:5432/windlass",
        f"amqp://windlass:{CANARY}@127.0.0.1",
        f"GET https://example.org/v1?api_key={CANARY}&size=3",
        f"GET https://example.org/v1?size=3&token={CANARY}",
        f"GET https://example.org/v1?key={CANARY}",
        f"access_token={CANARY}",
        f"OPENROUTER_API_KEY={CANARY}",
        f"password='{CANARY}'",
        f'{{"api_key": "{CANARY}", "model": "x"}}',
        f'{{\\"password\\": \\"{CANARY}\\"}}',
        f"password: {CANARY}",
        f"the api-key is {CANARY}",
        f"the key wl_abcdef12_{CANARY} does not open",
        f"sk-or-v1-{CANARY}",
        f"sk-{CANARY}",
        f"sk_live_{CANARY}",
        f"ghp_{CANARY}",
        f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0{CANARY}.{CANARY}",
        f"-----BEGIN RSA PRIVATE KEY-----\n{CANARY}\n-----END RSA PRIVATE KEY-----",
        f"-----BEGIN PRIVATE KEY-----\n{CANARY}",
    ],
)
def test_a_secret_is_taken_out(text: str) -> None:
    assert CANARY not in scrub(text)
    assert SCRUBBED in scrub(text)
    assert scrub(scrub(text)) == scrub(text)


@pytest.mark.parametrize(
    "text",
    [
        "task 0198c5f0-0000-7000-8000-000000000000: attempt 2 ended after 1.2 s (ServiceUnavailable); now retrying",
        "Bearer authentication failed",
        "Basic information is missing",
        "Unexpected token: < in JSON at position 0",
        "prompt_tokens=12 completion_tokens=3 max_tokens=5",
        '{"usage": {"prompt_tokens": 12}, "retry_after": 5}',
        "see https://example.org/a/path?page=2#part or write to help@example.org",
        "task-force, risk-averse, desk-bound",
        "the author: Ann",
        "KeyError: 'colour'",
        "windlass ready http://127.0.0.1:8800",
    ],
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert scrub(text) == text


def test_what_remains_still_tells_where_it_happened() -> None:
    text = f"GET https://u:{CANARY}@example.org/v1/jobs?api_key={CANARY}&page=2 answered 500"
    assert scrub(text) == f"GET https://{SCRUBBED}@example.org/v1/jobs?api_key={SCRUBBED}&page=2 answered 500"
    assert scrub(f"wl_abcdef12_{CANARY}") == f"wl_abcdef12_{SCRUBBED}"


def test_a_document_is_cleaned_in_depth_and_by_the_names_of_its_fields() -> None:
    document = {
        "headers": {"Authorization": CANARY, "X-Request": "7"},
        "openrouter_api_key": CANARY,
        "tried": [{"url": f"https://x:{CANARY}@example.org"}],
        f"token={CANARY}": 1,
        "usage": {"prompt_tokens": 12},
        "password": None,
        "retry_after": 2.5,
    }
    clean = scrub_document(document)
    assert CANARY not in str(clean)
    assert clean["headers"] == {"Authorization": SCRUBBED, "X-Request": "7"}
    assert (clean["usage"], clean["password"], clean["retry_after"]) == ({"prompt_tokens": 12}, None, 2.5)


def test_a_configured_secret_is_taken_out_whatever_it_looks_like(configured: str) -> None:
    assert scrub(f"they said: {configured}!") == f"they said: {SCRUBBED}!"
    assert withhold({"text": [f"({configured})"], "n": 1}) == {"text": [f"({SCRUBBED})"], "n": 1}


def test_a_configured_secret_that_may_be_a_word_stays_in_a_client_s_text() -> None:
    scrubbing.learn(["changeme"])
    assert scrub("using changeme") == f"using {SCRUBBED}"
    assert withhold("changeme is a poor password") == "changeme is a poor password"
    scrubbing.learn([])


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Bearer {CANARY}",
        f"curl -H 'authorization: bearer {CANARY}' http://x.example",
        f"Proxy-Authorization: Basic {CANARY}==",
        f'{{"Authorization":"Bearer {CANARY}","Accept":"*/*"}}',
        f'{{\\"Authorization\\": \\"Token {CANARY}\\"}}',
        f"Authorization={CANARY}",
        f'Authorization: Digest username="me", response="{CANARY}"',
        f"sent Bearer {CANARY} and got 401",
        f"https://user:{CANARY}@example.org/path",
        f"postgresql://windlass:{CANARY}@db/windlass",
        f"redis://:{CANARY}@cache",
        f"git clone https://{CANARY}@example.org/it.git",
    ],
)
def test_a_client_s_text_loses_authorization_values_and_credentials_in_urls(text: str) -> None:
    for value in (text, {"a": [{"b": text}]}, {text: 1}, {"tags": (text,)}):
        clean = withhold(value)
        assert CANARY not in str(clean)
        assert SCRUBBED in str(clean)
        assert withhold(clean) == clean
    assert CANARY not in withhold_label(text)


def test_what_is_called_an_authorization_is_one_in_a_client_s_document_too() -> None:
    document = {"headers": {"Authorization": "hunter2", "Accept": "*/*"}, "authorization": None, "n": 1}
    clean = {"headers": {"Authorization": SCRUBBED, "Accept": "*/*"}, "authorization": None, "n": 1}
    assert withhold(document) == clean


@pytest.mark.parametrize(
    "text",
    [
        "basic JavaScript, bearer shares, and the bearer of good news",
        "Authorization: see chapter 3. Authorization is required.",
        "send `Authorization: Bearer <token>`, or with curl `Authorization: Bearer $TOKEN`",
        'headers = {"Authorization": f"Bearer {key}"}',
        "git clone ssh://git@example.org/it.git, then mail me@example.org",
        "http://example.org:8080/a@b and https://example.org/?mail=a@b.example or //a:b@c",
        "password: hunter2, api_key=123, sk-SK-bratislava, token abcdefgh12345678",
        "\u00fcber://",
    ],
)
def test_what_is_no_secret_of_that_kind_stays_in_a_client_s_text(text: str) -> None:
    result = {"summary": text, "n": [1, None, True]}
    assert withhold(result) == result
    assert withhold_label(text) == text


@pytest.mark.parametrize("key", [f"wl_abcdef12_{CANARY}", f"sk-or-v1-{CANARY}", f"ghp_{CANARY}"])
def test_a_key_is_no_label(key: str) -> None:
    assert CANARY not in withhold_label(key)
    assert CANARY not in withhold_label(f"for {key}")
    for label in ("sk-SK-bratislava", "sk-learn-2024", "wl_notes", "nightly", "team/red:7"):
        assert withhold_label(label) == label


def test_an_error_is_stored_without_secrets(configured: str) -> None:
    def call_the_provider(header: str) -> None:
        raise InvalidInput(f"refused: {header}", body=f"you sent {header}", headers={"Authorization": CANARY})

    with pytest.raises(InvalidInput) as raised:
        call_the_provider(f"Authorization: Bearer {CANARY}")
    described = describe(raised.value, attempt=1)
    assert CANARY not in str(described)
    assert "call_the_provider" in described["stack_trace"]


def test_a_log_line_and_its_stack_trace_are_written_without_secrets() -> None:
    with pytest.raises(ConnectionError) as raised:
        raise ConnectionError(f"cannot reach amqp://windlass:{CANARY}@10.0.0.1")
    failure = (raised.type, raised.value, raised.tb)
    record = logging.LogRecord("x", logging.ERROR, __file__, 1, "asked with %s", (f"Bearer {CANARY}",), failure)
    line = TextLines().format(record)
    assert CANARY not in line
    assert "amqp://" in line
    assert "Traceback" in line


OURS = ("-eyJ" * 50_000, "token" + " " * 200_000, "://" * 70_000, "basic " * 40_000, "a" * 200_000, "wl_" * 70_000)
THEIRS = (
    "bearer " * 30_000, "bearer " + "a" * 200_000, "authorization:" + " " * 200_000, "authorization " * 15_000,
    "://a:" + "a" * 200_000, "://a:" * 40_000, "@://" * 50_000,
)  # fmt: skip


@pytest.mark.parametrize(("clean", "text"), [*((scrub, each) for each in OURS), *((withhold, each) for each in THEIRS)])
def test_no_text_takes_more_than_its_length_s_worth_of_time(clean: Callable[[str], str], text: str) -> None:
    def seconds(text: str) -> float:
        began = time.thread_time()
        clean(text)
        return time.thread_time() - began

    # Ten times the text may take ten times as long, and not a hundred times.
    short = min(seconds(text[: len(text) // 10]) for _ in range(3))
    assert min(seconds(text) for _ in range(3)) < 40 * short + 0.05


def test_the_settings_know_the_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_PROVIDER_KEY", "the provider's key")
    settings = Settings(
        database_url="postgresql://windlass:p%40ssword1@127.0.0.1/windlass",
        amqp_url="amqp://guest12345:guest12345@127.0.0.1",
        api_key=f"wl_abcdef12_{CANARY}",
        providers={"slow": {"actor": "probe", "api_key_env": "SOME_PROVIDER_KEY"}},
    )
    assert settings.secrets() == {
        "p%40ssword1", "p@ssword1", f"wl_abcdef12_{CANARY}", CANARY, "the provider's key",
    }  # fmt: skip


def test_a_secret_in_a_setting_that_is_refused_is_not_repeated() -> None:
    with pytest.raises(ValueError, match="api_key") as refused:
        Settings(api_key=f"not a key {CANARY}")
    assert CANARY not in str(refused.value)


def test_whatever_stands_under_a_secret_s_name_is_redacted_whole() -> None:
    said = {
        "apiKey": {"id": 7, "value": CANARY},
        "webhookCallbackApiKey": CANARY,
        "data": [{"user_token": [CANARY]}, {"clientSecret": 1}],
        "tokens": 12,
        "monkey": "banana",
        "password": None,
        "text": f"Bearer {CANARY}",
    }
    assert redact(said) == {
        "apiKey": SCRUBBED,
        "webhookCallbackApiKey": SCRUBBED,
        "data": [{"user_token": SCRUBBED}, {"clientSecret": SCRUBBED}],
        "tokens": 12,
        "monkey": "banana",
        "password": None,
        "text": f"Bearer {SCRUBBED}",
    }


def test_what_is_nested_too_deeply_to_be_looked_through_is_withheld_whole() -> None:
    deep: Any = {"header": "Authorization: Bearer abcdefghijklmnop"}
    # So deep that it can be written down and not be walked through: since 3.12 the two have limits of their own.
    for _ in range(800 if sys.version_info < (3, 12) else 3000):
        deep = [deep]
    assert withhold(deep) == SCRUBBED


@dataclass
class Report:
    said: str
    seen: list["Report"]


def test_what_is_inside_a_dataclass_is_looked_at(configured: str) -> None:
    """An actor may return one."""
    kept = withhold({"report": Report("well", [Report(f"with {configured}", [])])})
    assert kept == {"report": {"said": "well", "seen": [{"said": f"with {SCRUBBED}", "seen": []}]}}
    untouched = Report("well", [])
    assert withhold(untouched) is untouched
