"""Keys of real providers, which cost money: no test comes upon them by accident, and few are given them on purpose."""

import os

import pytest

from windlass.shared.settings import DEFAULT_PROVIDERS

OURS = "WINDLASS_TEST_"
ON_PURPOSE = f"{OURS}REAL_PROVIDERS"
NAMES = {name: str(table["api_key_env"]) for name, table in DEFAULT_PROVIDERS.items() if "api_key_env" in table}


def put_keys_aside() -> None:
    """Under names that no settings look for; the processes of a parallel run find them there."""
    for name in NAMES.values():
        if key := os.environ.pop(name, None):
            os.environ[f"{OURS}{name}"] = key


def key_of(provider: str) -> str:
    """For a test that really wants to speak to it. Skips where that is not asked for."""
    name = NAMES[provider]
    if os.environ.get(ON_PURPOSE) != "1":
        pytest.skip(f"speaks to the real {provider}, which costs money: set {ON_PURPOSE}=1 and {name}")
    if key := os.environ.get(f"{OURS}{name}"):
        return key
    pytest.skip(f"{name} is not set")
