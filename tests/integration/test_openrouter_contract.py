"""What the adapter relies on, asked of the fake, and of OpenRouter itself where that is wanted."""

import asyncio
import os
from collections.abc import Iterator

import pytest

from tests.support.providers.fake_providers import fake_providers
from tests.support.providers.real_providers import key_of
from windlass.shared.errors import TaskError
from windlass.shared.providers.base import Finished
from windlass.shared.providers.http.addresses import Allowances
from windlass.shared.providers.http.network import open_client
from windlass.shared.providers.openrouter import Adapter as OpenRouter
from windlass.shared.settings import Settings
from windlass.shared.toml_tables import Endpoint

SMALL_MODEL = os.environ.get("OPENROUTER_TEST_MODEL", "openai/gpt-4o-mini")
QUESTION = (
    {"role": "system", "content": "Summarise the user's text in one sentence."},
    {"role": "user", "content": "A windlass hauls a heavy load. Its pawl never lets the load slip back."},
)


@pytest.fixture(scope="module", params=["fake", "real"])
def settings(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    if request.param == "real":
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("OPENROUTER_API_KEY", key_of("openrouter"))
            yield Settings()
    else:
        with fake_providers(tmp_path_factory.mktemp("fake")) as fake:
            without_key = {"openrouter": {"api_key_env": None}}
            yield Settings(fake_providers_url=fake.url, providers=without_key)


def ask(settings: Settings, *, model: str = SMALL_MODEL, key: str | None = None) -> list[str | Finished]:
    endpoint = settings.endpoint_of("openrouter")
    assert endpoint is not None

    async def all_of_it() -> list[str | Finished]:
        async with open_client(Allowances.of(settings), timeout_seconds=30) as http:
            provider = OpenRouter("openrouter", Endpoint(endpoint.base_url, key or endpoint.api_key), http)
            return [piece async for piece in provider.stream_chat(QUESTION, model=model)]

    return asyncio.run(all_of_it())


def test_text_comes_in_pieces_and_the_cost_at_the_end(settings: Settings) -> None:
    *pieces, finished = ask(settings)
    assert len(pieces) > 1
    assert all(isinstance(piece, str) for piece in pieces)
    assert isinstance(finished, Finished)
    assert (finished.finish_reason, finished.is_cut_short) == ("stop", False)
    assert finished.generation_id
    assert finished.generation_id.startswith("gen-")
    assert finished.prompt_tokens
    assert finished.completion_tokens
    assert finished.cost is not None


def test_a_wrong_key_is_refused(settings: Settings) -> None:
    with pytest.raises(TaskError) as caught:
        ask(settings, key="bad-key")
    assert type(caught.value).__name__ == "Unauthorized"
