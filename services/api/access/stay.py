"""An answer that stays open, a stream or a long poll: not for longer than the key that it was opened with."""

from collections.abc import Awaitable, Callable


class Stay:
    """Doubted when something has become known about its key; over when the key is revoked or has expired."""

    __slots__ = ("_is_valid", "_wake", "is_doubted", "is_over", "key_id")

    def __init__(self, key_id: str, wake: Callable[[], None], is_valid: Callable[[], Awaitable[bool]]) -> None:
        self.key_id = key_id
        self.is_doubted = False
        self.is_over = False
        self._wake = wake
        self._is_valid = is_valid

    def doubt(self) -> None:
        """Wakes whoever waits under it, to ask."""
        self.is_doubted = True
        self._wake()

    def end(self) -> None:
        self.is_over = True
        self._wake()

    async def goes_on(self) -> bool:
        """To be asked between a read and its telling. It costs a question only where there is a doubt."""
        while self.is_doubted and not self.is_over:
            self.is_doubted = False  # before the question: a doubt that comes meanwhile is a new one
            try:
                self.is_over = not await self._is_valid()
            except BaseException:
                self.is_doubted = True
                raise
        return not self.is_over
