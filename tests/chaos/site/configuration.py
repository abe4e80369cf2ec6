"""How the Windlass under chaos is configured: narrow limits, short times, and actors of somebody's own."""

from pathlib import Path

from tests.chaos.webhooks.receiver import TIMEOUT_SECONDS
from tests.support.agents_at_work import COMMAND
from windlass.shared.settings import DEMO_AGENT

LIMITS = {"leonardo": 3, "midjourney": 3, "openrouter": 4, "narrow": 3}
CALLBACK_KEY = "callback-key-of-the-storm"
CONFIG = f"""
[providers.leonardo]
limit = {LIMITS["leonardo"]}
poll_seconds = 0.3
call_timeout_seconds = 3

[providers.midjourney]
limit = {LIMITS["midjourney"]}
# A provider that was killed has forgotten what it was asked for, and will never call back: nobody waits long here.
callback_wait_seconds = 10
poll_seconds = 0.3
call_timeout_seconds = 3

[providers.openrouter]
limit = {LIMITS["openrouter"]}
call_timeout_seconds = 3

[providers.narrow]
actor = "probe"
limit = {LIMITS["narrow"]}

[agents.demo]
command = {[*COMMAND[:-1], str(DEMO_AGENT)]}
sandbox = "off"

[agents.unruly]
command = {list(COMMAND)}
sandbox = "off"

[actors.webhook.retries]
other = [0.2, 0.5, 1, 1, 2, 2, 3, 3, 3]

[actors.walk.retries]
other = [0.2, 0.5, 1, 1, 2]

[actors.march.retries]
other = [0.2, 0.5, 1, 1, 2]

[actors.hike.retries]
other = [0.2, 0.5, 1, 1, 2]

[network]
allow_private = ["127.0.0.1"]
"""
TELLER = Path(__file__).parents[1] / "webhooks" / "teller.py"
"""An actor of somebody's own, whose tasks are told of."""
WALKERS = Path(__file__).parents[1] / "steps" / "walkers.py"
"""Others, that work in steps."""
SETTINGS = {
    "WINDLASS_ABANDONED_JOB_SECONDS": "15",
    "WINDLASS_BREAKER_OPEN_SECONDS": "2",
    "WINDLASS_LONGEST_PAUSE_SECONDS": "3",
    "WINDLASS_WEBHOOK_TIMEOUT_SECONDS": f"{TIMEOUT_SECONDS:g}",
    "WINDLASS_MEMORY_GATHER_SECONDS": "2",
    "WINDLASS_ACTORS": f"{TELLER},{WALKERS}",
    "LEONARDO_CALLBACK_KEY": CALLBACK_KEY,
}
"""Short times for what would otherwise take longer than a storm. A job that nobody can be asked about counts as ended
after longer than the provider can be frozen with the order in its ears, and then work on it."""
