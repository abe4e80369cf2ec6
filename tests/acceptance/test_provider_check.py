"""`windlass providers check`: the built-in adapters keep what they promise, by the suite that everybody can run."""

from pathlib import Path

import pytest

from tests.support.command_line import Run, run

__all__ = ["run"]

CONFIG = """
[providers.our-models]
actor = "summarize"
adapter = "openai"
base_url = "https://models.example/v1"
api_key_env = "NO_SUCH_KEY"
model = "small"

[providers.homeless]
actor = "summarize"
"""


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "windlass.toml").write_text(CONFIG)
    monkeypatch.setenv("WINDLASS_CONFIG", str(tmp_path / "windlass.toml"))


@pytest.mark.parametrize("name", ["leonardo", "midjourney", "openrouter", "our-models"])
def test_built_in_adapters_keep_their_promises(run: Run, name: str) -> None:
    tried = run("providers", "check", name)
    assert (tried.code, {row[0] for row in tried.rows[1:]}) == (0, {"kept"}), tried.out
    assert tried.err.endswith(f"{len(tried.rows) - 1} kept, 0 skipped, 0 broken\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nobody"], "no provider is called nobody; there are "),
        (["local"], "local does agent, and has no adapter"),
        (["homeless"], 'Name one as `adapter` in [providers.homeless] ("openai"'),
        (["our-models", "--real"], "our-models cannot be spoken to: set NO_SUCH_KEY"),
        (["leonardo", "--real"], "leonardo cannot be spoken to: set LEONARDO_API_KEY"),
    ],
)
def test_where_nothing_can_be_tried_it_says_why(run: Run, arguments: list[str], said: str) -> None:
    tried = run("providers", "check", *arguments)
    assert (tried.code, tried.out) == (1, "")
    assert said in tried.err
