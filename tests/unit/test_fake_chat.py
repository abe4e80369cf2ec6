"""When a chat is over in the fake OpenRouter's books."""

import asyncio
from pathlib import Path

from litestar.testing import RequestFactory

from windlass.services.fake_providers.behaviour import Behaviour
from windlass.services.fake_providers.books import Books
from windlass.services.fake_providers.callbacks import Callbacks
from windlass.services.fake_providers.database import open_database
from windlass.services.fake_providers.desk import Desk
from windlass.services.fake_providers.openrouter import Chat, stream
from windlass.services.fake_providers.scripts import Scripts
from windlass.services.fake_providers.summary import complete


def test_it_is_over_before_its_client_can_know(tmp_path: Path) -> None:
    """Whoever is told frees a place at once, and the next call must not be counted beside this one."""
    told = asyncio.run(running_at_each_piece(tmp_path))
    spoken = [running for piece, running in told if b'"content": ""' not in piece and b"[DONE]" not in piece]
    assert len(spoken) > 2
    assert set(spoken) == {1}
    assert [running for _, running in told[len(spoken) :]] == [0, 0, 0], "finish reason, usage, [DONE]"


async def running_at_each_piece(directory: Path) -> list[tuple[bytes, int]]:
    database = open_database(directory)
    books = Books(database, job_seconds=1)
    callbacks = Callbacks(books)
    desk = Desk("openrouter", "http://fake", books, Scripts(database), callbacks)
    request = RequestFactory().post("/")
    text = "The windlass hauls a heavy load."
    job = desk.begin_chat(request, "gen-1", Behaviour({}), prompt=text, body={})
    chat = Chat(job, "a/model", complete(text, text, None), "stop")
    told = [(piece, books.tell("openrouter")["running"]) async for piece in stream(request, desk, chat)]
    await callbacks.close()
    database.close()
    return told
