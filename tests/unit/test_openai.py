"""Chat completions in OpenAI's own shape: what is asked, with a key and without, and who may be asked at all."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from windlass.shared.errors import NotFound, QuotaExhausted, RateLimited, TaskError
from windlass.shared.providers.base import Finished
from windlass.shared.providers.openai import Adapter
from windlass.shared.providers.registry import chat_provider
from windlass.shared.settings import FAKE_KEY, Settings
from windlass.shared.toml_tables import Endpoint

QUESTION = ({"role": "user", "content": "Why?"},)
ANSWER = (
    'data: {"id": "chatcmpl-1", "model": "small", "choices": [{"delta": {"content": "Be"}, "finish_reason": null}]}',
    'data: {"id": "chatcmpl-1", "choices": [{"delta": {"content": "cause."}, "finish_reason": "stop"}], "usage": null}',
    'data: {"id": "chatcmpl-1", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}',
    "data: [DONE]",
)
OWN = {"actor": "summarize", "adapter": "openai", "base_url": "https://models.example/v1/", "model": "small"}


def ask(answer: httpx.Response, *, key: str = "a-key") -> tuple[httpx.Request, list[str | Finished]]:
    asked: list[httpx.Request] = []

    def respond(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return answer

    async def all_of_it() -> list[str | Finished]:
        async with httpx.AsyncClient(transport=httpx.MockTransport(respond)) as http:
            adapter = Adapter("ours", Endpoint("https://models.example/v1", key), http)
            return [piece async for piece in adapter.stream_chat(QUESTION, model="small")]

    said = asyncio.run(all_of_it())
    return asked[0], said


def streamed() -> httpx.Response:
    content = "".join(f"{line}\n\n" for line in ANSWER)
    return httpx.Response(200, text=content, headers={"Content-Type": "text/event-stream"})


def test_words_come_in_pieces_and_the_usage_is_asked_for() -> None:
    request, said = ask(streamed())
    assert said == ["Be", "cause.", Finished("small", "stop", "chatcmpl-1", 3, 2, None)]
    assert json.loads(request.content) == {
        "model": "small", "messages": list(QUESTION), "stream": True, "stream_options": {"include_usage": True},
    }  # fmt: skip
    assert str(request.url) == "https://models.example/v1/chat/completions"
    assert request.headers["authorization"] == "Bearer a-key"


def test_a_server_that_wants_no_key_gets_none() -> None:
    request, said = ask(streamed(), key="")
    assert "authorization" not in request.headers
    assert said[:2] == ["Be", "cause."]


@pytest.mark.parametrize(
    ("code", "kind"), [("insufficient_quota", QuotaExhausted), ("rate_limit_exceeded", RateLimited)]
)
def test_an_account_without_money_is_not_waited_for(code: str, kind: type[TaskError]) -> None:
    with pytest.raises(kind):
        ask(httpx.Response(429, json={"error": {"message": "no", "type": code, "code": code}}))


def settings_of(**fields: Any) -> Settings:
    return Settings(providers={"ours": {**OWN, **fields}}, fake_providers_url="http://127.0.0.1:8900")


def test_it_is_asked_where_it_is_with_its_own_key_and_never_at_the_bundled_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert settings_of().endpoint_of("ours") == Endpoint("https://models.example/v1", "")
    keyed = settings_of(api_key_env="KEY_OF_OURS")
    assert (keyed.endpoint_of("ours"), keyed.lack_of("ours")) == (None, "set KEY_OF_OURS")
    homeless = settings_of(base_url=None)
    assert (homeless.endpoint_of("ours"), homeless.lack_of("ours")) == (None, "give base_url in [providers.ours]")
    monkeypatch.setenv("KEY_OF_OURS", "secret")
    assert settings_of(api_key_env="KEY_OF_OURS").endpoint_of("ours") == Endpoint("https://models.example/v1", "secret")
    assert settings_of(adapter="openrouter", base_url=None).endpoint_of("ours") == Endpoint(
        "http://127.0.0.1:8900/openrouter", FAKE_KEY, is_fake=True
    )


def test_who_writes_no_texts_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_OF_OURS", "secret")

    async def speak(adapter: str) -> None:
        async with httpx.AsyncClient() as http:
            chat_provider(settings_of(adapter=adapter, api_key_env="KEY_OF_OURS"), "ours", http)

    asyncio.run(speak("openai"))
    with pytest.raises(NotFound, match="writes no texts; name one that does"):
        asyncio.run(speak("leonardo"))
