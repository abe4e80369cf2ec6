"""Texts: what has gathered beside the text index is sorted in, so that no task's end has to do it."""

from contextlib import suppress

from windlass.shared.db import CONTENDED, Database
from windlass.shared.store.reading import listing


async def sort_in_new_texts(db: Database) -> None:
    with suppress(*CONTENDED):  # out of time: what has been moved until then stays, and the rest has until next time
        await listing.sort_in_new_texts(db)
