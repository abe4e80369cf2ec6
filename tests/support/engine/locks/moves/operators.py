"""What operators change."""

from tests.support.engine.locks.moves.driven import at, move
from tests.support.engine.locks.yard import KEY_LIMITS, PROVIDERS, Yard
from windlass.shared.settings import Settings
from windlass.shared.store.flow_control import flow, providers

CONFIGURED = Settings(
    providers={name: {"actor": "probe", "limit": limit} for name, limit in PROVIDERS.items()},
    actors={"probe": {"concurrency": {"key": "/account", "limit": KEY_LIMITS[0]}}},
)


@move
@at("providers")
async def change_provider(yard: Yard) -> None:
    changes: dict[str, object] = yard.chance.choice(
        [{"paused": True}, {"paused": False, "breaker": None}, {"paused": None}]
    )
    await flow.change(yard.pool, yard.provider(), changes)


@move
@at("providers")
async def configure(yard: Yard) -> None:
    """As a process does that starts: it locks all of them, though it changes none."""
    await providers.configure(yard.pool, CONFIGURED)
