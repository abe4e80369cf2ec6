"""Results as they are shown: the urls of media are signed anew, and nobody else's result is touched."""

import asyncio
from typing import Any, cast
from uuid import UUID

import pytest

from windlass.services.api.media.links import MediaLinks
from windlass.shared.db import Database
from windlass.shared.settings import Settings
from windlass.shared.signing import media_expiry

SECRET = b"s" * 32
CONTENT = UUID("01890000-0000-7000-8000-00000000000a")
RESULT = {"generation_id": "g", "content_ids": [str(CONTENT)], "urls": ["https://old.example/expired"]}


class OneSecret:
    """All that is asked of the database here, counted."""

    asked = 0

    async def fetchval(self, *_: Any) -> bytes:
        self.asked += 1
        return SECRET


def links(*, ready: bool = True) -> MediaLinks:
    made = MediaLinks(Settings(public_url="https://windlass.example"), cast(Database, OneSecret()))
    if ready:
        asyncio.run(made.secret())
    return made


def test_a_media_task_s_urls_are_signed_anew_from_its_content_ids() -> None:
    shown = links().renewed("media", RESULT)
    (url,) = shown["urls"]
    expires, _, signature = url.partition("?expires=")[2].partition("&signature=")
    assert url.startswith(f"https://windlass.example/api/v1/media/{CONTENT}?")
    assert media_expiry(SECRET, CONTENT, expires, signature) is not None
    assert {**shown, "urls": RESULT["urls"]} == RESULT
    assert RESULT["urls"] == ["https://old.example/expired"], "the row that streams share is not changed"


@pytest.mark.parametrize("actor", ["agent", "probe", "summarize"])
def test_another_actor_s_result_is_not_signed_whatever_it_holds(actor: str) -> None:
    assert links().renewed(actor, RESULT) is RESULT


@pytest.mark.parametrize("result", [None, "text", {"other": 1}, {"content_ids": "x"}, {"content_ids": ["no-id"]}])
def test_what_is_no_list_of_files_stays_as_it_is(result: Any) -> None:
    assert links().renewed("media", result) is result


def test_until_the_secret_is_known_a_result_goes_out_as_it_was_stored() -> None:
    assert links(ready=False).renewed("media", RESULT) is RESULT


def test_the_secret_is_asked_for_once() -> None:
    database = OneSecret()

    async def use() -> None:
        made = MediaLinks(Settings(), cast(Database, database))
        for _ in range(3):
            await made.url(CONTENT)

    asyncio.run(use())
    assert database.asked == 1
