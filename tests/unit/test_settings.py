"""Settings: the environment over the file over the defaults, and nothing that cannot keep the promises."""

import os
import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from tests.support.pages import page
from windlass.shared.settings import Settings


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that WINDLASS_CONFIG names."""
    path = tmp_path / "windlass.toml"
    monkeypatch.setenv("WINDLASS_CONFIG", str(path))
    return path


def test_the_defaults_are_the_contract_s() -> None:
    settings = Settings()
    assert (settings.port, settings.data_dir) == (8800, Path(".windlass"))
    assert (settings.lease_seconds, settings.heartbeat_seconds) == (30, 5)
    assert settings.probe_faults is False


def test_the_environment_wins_over_the_file_and_the_file_over_the_defaults(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.write_text("port = 9000\nactor_threads = 3\n")
    monkeypatch.setenv("WINDLASS_PORT", "9100")
    settings = Settings()
    assert (settings.port, settings.actor_threads, settings.actor_processes) == (9100, 3, 1)


def test_an_argument_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDLASS_PORT", "9100")
    assert Settings(port=9200).port == 9200


def test_the_probe_is_there_and_has_no_limit_unless_it_is_given_one(config: Path) -> None:
    assert Settings(config=None).providers["probe"].limit is None
    config.write_text("[providers.probe]\nlimit = 2\n")
    probe = Settings().providers["probe"]
    assert (probe.actors, probe.limit) == (("probe",), 2)


def test_the_file_s_providers_come_beside_the_default_ones(config: Path) -> None:
    config.write_text('[providers.slow]\nactor = "probe"\nlimit = 1\n')
    settings = Settings()
    limits = {name: provider.limit for name, provider in settings.providers.items()}
    default = {"midjourney": 1, "leonardo": 3, "openrouter": 8, "local": 2, "hash": 2, "probe": None, "http": None}
    assert limits == {**default, "slow": 1}


def test_a_provider_s_fields_are_merged_one_by_one(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config.write_text('[providers.slow]\nactor = "probe"\nlimit = 1\n')
    monkeypatch.setenv("WINDLASS_PROVIDERS", '{"slow": {"limit": 5}}')
    slow = Settings().providers["slow"]
    assert (slow.actors, slow.limit) == (("probe",), 5)


def test_every_provider_has_a_queue_of_its_own(config: Path) -> None:
    config.write_text('[providers.slow]\nactor = "probe"\n')
    settings = Settings()
    assert set(settings.all_queues()) > {"probe.probe", "probe.slow", "media.leonardo", "summarize.openrouter"}
    assert set(settings.consumed_queues(["probe"])) == {"probe.probe", "probe.slow"}, "all of its actors' queues"


SEVERAL = """
[providers.slow]
actors = ["summarize", "probe"]
[providers.local]
actors = ["agent", "probe"]
"""


def test_a_provider_of_several_actors_has_a_queue_for_each(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config.write_text(SEVERAL)
    settings = Settings()
    assert set(settings.all_queues()) > {"summarize.slow", "probe.slow", "agent.local", "probe.local"}
    assert set(settings.consumed_queues(["probe"])) == {"probe.probe", "probe.slow", "probe.local"}
    assert settings.providers["local"].limit == 2, "the rest of a built-in one stays"
    monkeypatch.setenv("WINDLASS_PROVIDERS", '{"slow": {"actor": "media"}}')
    assert Settings().providers["slow"].actors == ("media",), "who speaks last is heard, in either word"


def test_queues_are_named_with_commas_between_them(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config.write_text('[providers.slow]\nactor = "probe"\n[providers.fast]\nactor = "probe"\n')
    monkeypatch.setenv("WINDLASS_QUEUES", "probe.slow, probe.fast,")
    assert Settings().consumed_queues(["probe"]) == ("probe.slow", "probe.fast")


def test_queues_can_be_a_list_in_the_file(config: Path) -> None:
    config.write_text('queues = ["probe.probe"]\n')
    assert Settings().consumed_queues(["probe"]) == ("probe.probe",)


def test_a_queue_that_no_provider_serves_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDLASS_QUEUES", "probe.probe,media.nobody")
    with pytest.raises(ValidationError, match=r"no provider serves media\.nobody"):
        Settings()


@pytest.mark.parametrize(
    "fields",
    [
        {"WINDLASS_LEASE_SECONDS": "26"},
        {"WINDLASS_HEARTBEAT_SECONDS": "10"},
        {"WINDLASS_STOP_GRACE_SECONDS": "12"},
        {"WINDLASS_LEASE_MARGIN_SECONDS": "10"},
    ],
)
def test_a_lease_that_cannot_keep_its_promise_is_refused_with_the_fields_to_change(
    fields: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in fields.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValidationError) as refused:
        Settings()
    for field in ("lease_seconds", "heartbeat_seconds", "stop_grace_seconds", "lease_margin_seconds"):
        assert field in str(refused.value)


def test_a_short_lease_is_fine_when_everything_else_is_short_too() -> None:
    settings = Settings(lease_seconds=3.1, heartbeat_seconds=0.5, stop_grace_seconds=0.5, lease_margin_seconds=0.6)
    assert settings.lease_seconds == 3.1


@pytest.mark.parametrize("field", ["lease_seconds", "heartbeat_seconds", "safety_poll_seconds", "actor_threads"])
def test_nothing_takes_no_time_and_nobody_has_no_threads(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"WINDLASS_{field.upper()}", "0")
    with pytest.raises(ValidationError, match=field):
        Settings()


def test_a_misspelt_setting_in_the_file_is_refused_by_name(config: Path) -> None:
    config.write_text("lease_second = 60\n")
    with pytest.raises(ValidationError, match="lease_second"):
        Settings()


def test_a_misspelt_field_of_a_provider_is_refused_by_name(config: Path) -> None:
    config.write_text("[providers.probe]\nlimits = 2\n")
    with pytest.raises(ValidationError, match="limits"):
        Settings()


def test_a_negative_limit_is_refused(config: Path) -> None:
    config.write_text("[providers.probe]\nlimit = -1\n")
    with pytest.raises(ValidationError, match="limit"):
        Settings()


def test_a_limit_of_zero_is_a_limit(config: Path) -> None:
    config.write_text("[providers.probe]\nlimit = 0\n")
    assert Settings().providers["probe"].limit == 0


@pytest.mark.parametrize("key", ["wl_admin1_" + "s" * 24, "wl_" + "a" * 32 + "_" + "S9" * 32])
def test_an_api_key_of_the_right_shape_is_taken(key: str) -> None:
    assert Settings(api_key=key).api_key == key


@pytest.mark.parametrize(
    "key",
    ["", "secret", "wl_admin1_short", "xx_admin1_" + "s" * 24, "wl_a_" + "s" * 24, "wl_admin1_" + "s" * 23 + "!"],
)
def test_an_api_key_of_another_shape_is_refused(key: str) -> None:
    with pytest.raises(ValidationError, match="api_key"):
        Settings(api_key=key)


def test_secrets_that_were_read_are_taken_out_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = {
        "WINDLASS_DATABASE_URL": "postgresql://windlass:a-word-for-postgres@127.0.0.1/windlass",
        "WINDLASS_DATABASE_DIRECT_URL": "postgresql://windlass:a-word-for-postgres@127.0.0.1/windlass",
        "WINDLASS_AMQP_URL": "amqp://windlass:a-word-for-rabbitmq@127.0.0.1/windlass",
        "WINDLASS_API_KEY": f"wl_abcdef_{'x' * 32}",
        "LEONARDO_API_KEY": "a-key-of-leonardo",
        "LEONARDO_CALLBACK_KEY": "a-key-for-callbacks",
    }
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    settings = Settings()
    settings.take_secrets_out_of_the_environment()
    assert not secrets.keys() & os.environ.keys()
    endpoint = settings.endpoint_of("leonardo")
    assert endpoint
    assert (endpoint.api_key, settings.callback_key_of("leonardo")) == ("a-key-of-leonardo", "a-key-for-callbacks")
    assert {"a-word-for-postgres", "a-word-for-rabbitmq", "a-key-of-leonardo"} <= settings.secrets()


def test_agents_need_a_sandbox_unless_somebody_decides_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    agents = {"strict": {"command": ("a",), "sandbox": "required"}, "loose": {"command": ("a",), "sandbox": "off"}}
    assert Settings(agents=agents).sandbox_of("demo") == "required"
    monkeypatch.setenv("WINDLASS_AGENT_SANDBOX", "best-effort")
    settings = Settings(agents=agents)
    modes = {name: settings.sandbox_of(name) for name in ("demo", "strict", "loose")}
    assert modes == {"demo": "best-effort", "strict": "required", "loose": "off"}


def test_the_file_that_the_page_shows_is_read(config: Path) -> None:
    shown, *_ = re.findall(r"```toml\n(.*?)```", page("settings.md"), re.DOTALL)
    config.write_text(shown)
    settings = Settings()
    assert settings.providers["slow"].limit == 2
    assert settings.agents["reviewer"].permanent_exit_codes == (3,)
