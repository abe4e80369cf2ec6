"""An actor of somebody's own, whose tasks are told of: it dies as often as it is asked to."""

from windlass import Context, actor


@actor(throws=(ValueError,))
async def tell(mark: str, deaths: int = 0, *, context: Context) -> str:
    """Gives its mark back."""
    if context.attempt <= deaths:
        raise ValueError(f"{mark} was to die {deaths} times")
    return mark
