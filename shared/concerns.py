"""Who is concerned by what becomes of a task: bits that are written at its submit, and say whom its moves are told."""

from enum import IntFlag


class Concern(IntFlag):
    """Of a plain task there is none, and its moves are told to nobody."""

    RUN = 1
    WORKFLOW = 2
    WEBHOOK = 4
    MEMORY = 8
    SCHEDULE = 16
    KEY = 32

    @property
    def word(self) -> str:
        """As `untold` and the logs name it."""
        assert self.name is not None, "a single concern has a name"
        return self.name.lower()


LEVEL_OF_A_KEY = 1
"""Functions of this level and above know what a task's concurrency key asks of its moves."""

LOCKS_A_SUBJECT = Concern.RUN | Concern.WORKFLOW
"""Whoever ends such a task waits for the project or the workflow that it is of, which may be busy."""
