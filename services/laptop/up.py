"""`windlass up`: everything in the foreground, until a signal says stop."""

import asyncio
import contextlib
import os
import sys
from typing import Final

from windlass.services.laptop.installation import Installation, names_of_everyone
from windlass.services.laptop.supervision.console import Console
from windlass.services.laptop.supervision.stop_signals import StopSignals
from windlass.services.laptop.supervision.unit import StartFailure
from windlass.shared.settings import Settings
from windlass.shared.settings.loading import settings_or_exit

PRIVATE: Final = 0o077
"""The umask of everything that is started here: media, books and logs are nobody else's."""


def up(*, reload: bool = False) -> int:
    """Returns the exit code: 0 when it was told to stop, 1 when it could not start."""
    os.umask(PRIVATE)
    settings = settings_or_exit()
    console = Console(sys.stderr.fileno(), sys.stdout.fileno(), names_of_everyone(settings))
    try:
        asyncio.run(_until_stopped(settings, console, reload=reload))
    except StartFailure as failure:
        console.say(str(failure))
        return 1
    finally:
        console.close()
    return 0


async def _until_stopped(settings: Settings, console: Console, *, reload: bool) -> None:
    installation = Installation(settings, console, reload=reload)
    serving = asyncio.create_task(installation.serve())

    def stop(reason: str) -> None:
        console.say(f"{reason}: stopping everything in order (again: running tasks are handed back at once)")
        serving.cancel()

    def hurry() -> None:
        console.say("handing running tasks back at once (again: everything is killed)")
        installation.hand_back()

    def kill() -> None:
        console.say("killing everything")
        installation.kill()

    StopSignals(stop, hurry, kill)
    with contextlib.suppress(asyncio.CancelledError):
        await serving
