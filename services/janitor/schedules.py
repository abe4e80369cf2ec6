"""The janitor's loop for schedules: sleeps until one is due, or somebody calls; idle it asks Postgres nothing."""

import asyncio

from windlass.services.janitor.premises import Premises
from windlass.services.janitor.table import duty_named
from windlass.services.janitor.wall import perform

AGAIN_SECONDS = 1.0
"""After a look that failed: Postgres may be away."""


async def keep_schedules(premises: Premises) -> None:
    """Until cancelled. Beside everything else: ten thousand that are due at once hold nobody up."""
    duty = duty_named("schedules")
    while True:
        await premises.next_schedule.wait()
        outcome = await perform(duty, premises)
        if outcome.error is not None:
            await asyncio.sleep(AGAIN_SECONDS)
