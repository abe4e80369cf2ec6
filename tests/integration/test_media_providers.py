"""The adapters against the fake provider server, and the same contract against the real providers where asked for."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.support.providers.fake_providers import FakeProviders
from tests.support.providers.real_providers import NAMES, key_of
from tests.support.providers.small_server import Request, answer, on_a_loop, serving
from tests.support.providers.studio import SMALL, Studio, at_the_fake, orders_at, with_key
from windlass.shared.errors import (
    ContentRejected,
    Forbidden,
    InvalidInput,
    NetworkTimeout,
    NotFound,
    QuotaExhausted,
    RateLimited,
    ResultTooLarge,
    ServiceUnavailable,
    TaskError,
    Unauthorized,
)
from windlass.shared.providers.base import CannotTell, Done, Failed, Found, NotThere, OrderUnknown, Pending
from windlass.shared.settings import Settings


@pytest.fixture(params=["leonardo", "midjourney"])
def studio(request: pytest.FixtureRequest, fake: FakeProviders) -> Studio:
    return at_the_fake(fake, request.param)


@pytest.fixture
def leonardo(fake: FakeProviders) -> Studio:
    return at_the_fake(fake, "leonardo")


@pytest.fixture
def midjourney(fake: FakeProviders) -> Studio:
    return at_the_fake(fake, "midjourney")


@pytest.fixture(params=["leonardo", "midjourney", "real leonardo", "real midjourney"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Studio:
    """The fake one, and the real one where that is asked for."""
    real, _, name = request.param.rpartition(" ")
    if not real:
        return at_the_fake(request.getfixturevalue("fake"), name)
    monkeypatch.setenv(NAMES[name], key_of(name))
    return Studio(name, Settings(), poll_seconds=3, params=SMALL[name])


@pytest.mark.timeout(900)
@on_a_loop
async def test_a_picture_is_ordered_found_again_awaited_and_fetched(either: Studio, tmp_path: Path) -> None:
    prompt = f"a lighthouse at dusk, in the year {datetime.now(UTC).timestamp():.3f}"
    intended_at = datetime.now(UTC)
    job_id = await either.place(prompt)
    async with either.adapter() as adapter:
        found = await adapter.find(either.order(prompt), intended_at)
    assert isinstance(found, CannotTell) or found == Found(job_id)
    end = await either.end_of(job_id)
    assert isinstance(end, Done), end
    for number, url in enumerate(end.urls):
        path = tmp_path / str(number)
        downloaded = await either.fetch(url, path)
        with Image.open(path) as picture:
            assert picture.get_format_mimetype() == downloaded.media_type


@on_a_loop
async def test_a_job_that_nobody_ordered_is_not_found(either: Studio) -> None:
    end = await either.end_of("00000000-0000-4000-8000-000000000000")
    assert isinstance(end, Failed)
    assert isinstance(end.error, NotFound)


@on_a_loop
async def test_a_wrong_key_is_told_at_the_order(either: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    with_key(either, monkeypatch, "bad-key")
    with pytest.raises(Unauthorized, match=either.name):
        await either.place("a lighthouse")


@pytest.mark.parametrize(
    ("word", "kind"),
    [("[[429=7]]", RateLimited), ("[[503]]", ServiceUnavailable), ("[[400]]", InvalidInput),
     ("moderated", ContentRejected)],
)  # fmt: skip
@on_a_loop
async def test_a_refused_order_is_a_certain_no(
    studio: Studio, fake: FakeProviders, word: str, kind: type[TaskError]
) -> None:
    before = orders_at(fake, studio)
    with pytest.raises(kind) as caught:
        await studio.place(f"a lighthouse {word}")
    assert getattr(caught.value, "retry_after", None) == (7 if kind is RateLimited else None)
    assert orders_at(fake, studio) == before


@on_a_loop
async def test_an_account_without_credit_is_told(studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    with_key(studio, monkeypatch, "no-credit")
    with pytest.raises(QuotaExhausted):
        await studio.place("a lighthouse")


@pytest.mark.parametrize("word", ["500", "drop-before", "drop-after", "hang-after", "garbage"])
@on_a_loop
async def test_an_order_whose_answer_is_lost_is_in_doubt(studio: Studio, fake: FakeProviders, word: str) -> None:
    prompt, intended_at = f"a lighthouse, {word} [[{word}]]", datetime.now(UTC)
    before = orders_at(fake, studio)
    # Who hangs is not waited for as long as the others; but long enough to be reached and to take the order.
    asking = replace(studio, timeout_seconds=5) if word == "hang-after" else studio
    with pytest.raises(OrderUnknown, match=studio.name):
        await asking.place(prompt)
    taken = orders_at(fake, studio) - before
    assert taken == (word in {"drop-after", "hang-after", "garbage"})
    async with studio.adapter() as adapter:
        found = await adapter.find(studio.order(prompt), intended_at)
        if studio.name == "midjourney":
            assert isinstance(found, CannotTell)
        elif not taken:
            assert isinstance(found, NotThere)
        else:
            assert isinstance(found, Found)
            assert not isinstance(await adapter.poll(found.job_id), Failed)


@on_a_loop
async def test_an_order_is_not_taken_for_another_with_the_same_prompt(leonardo: Studio) -> None:
    intended_at = datetime.now(UTC)
    earlier = await leonardo.place("two of a kind")
    async with leonardo.adapter() as adapter:
        order = leonardo.order("two of a kind")
        assert await adapter.find(order, intended_at) == Found(earlier)
        # The other one was there shortly before; whether the clocks differ nobody knows.
        assert isinstance(await adapter.find(order, datetime.now(UTC) + timedelta(seconds=5)), CannotTell)
        await adapter.order(order)
        assert isinstance(await adapter.find(order, intended_at), CannotTell)
        reworded = leonardo.order("never ordered", params={"enhancePrompt": True})
        assert isinstance(await adapter.find(reworded, intended_at), CannotTell)


@on_a_loop
async def test_a_pending_job_says_how_far_it_is(studio: Studio) -> None:
    async with studio.adapter() as adapter:
        without, job_id = (
            await studio.place("slow [[seconds=60]]"),
            await studio.place("slow [[seconds=60]] [[percent]]"),
        )
        assert await adapter.poll(without) == Pending(None)
        state = await adapter.poll(job_id)
        assert isinstance(state, Pending)
        assert state.percent is not None
        assert 0 <= state.percent < 100


@on_a_loop
async def test_a_job_that_fails_has_failed(studio: Studio) -> None:
    end = await studio.end_of(await studio.place("a lighthouse [[fail]]"))
    assert isinstance(end, Failed)
    assert isinstance(end.error, ServiceUnavailable)


@on_a_loop
async def test_a_poll_that_fails_ends_nothing(studio: Studio, fake: FakeProviders) -> None:
    job_id = await studio.place("a lighthouse")
    fake.script(studio.name, "poll:503")
    async with studio.adapter() as adapter:
        with pytest.raises(ServiceUnavailable):
            await adapter.poll(job_id)
    assert isinstance(await studio.end_of(job_id), Done)


@pytest.mark.parametrize("action", ["img2img", "img2vid"])
@on_a_loop
async def test_a_picture_becomes_another_or_a_film(studio: Studio, action: str, tmp_path: Path) -> None:
    (source, *_) = await studio.made("a lighthouse")
    params = SMALL[studio.name] if action == "img2img" else {}
    (url, *_) = await studio.made("at night", action, source_image=source, params=params)
    downloaded = await studio.fetch(url, tmp_path / "file")
    assert downloaded.media_type == ("image/gif" if action == "img2vid" else downloaded.media_type)


@on_a_loop
async def test_a_source_image_at_a_private_address_is_not_fetched(leonardo: Studio, fake: FakeProviders) -> None:
    before = orders_at(fake, leonardo)
    async with serving(lambda _: answer()) as private:
        with pytest.raises(Forbidden, match=r"127\.0\.0\.1"):
            await leonardo.place("at night", "img2img", source_image=private.url)
        assert private.connections == 0
    assert orders_at(fake, leonardo) == before


@on_a_loop
async def test_an_upload_that_fails_orders_nothing_and_leaves_no_doubt(leonardo: Studio, fake: FakeProviders) -> None:
    (source, *_) = await leonardo.made("a lighthouse")
    before = orders_at(fake, leonardo)
    fake.script("leonardo", "upload:500")
    with pytest.raises(ServiceUnavailable):
        await leonardo.place("at night", "img2img", source_image=source)
    assert orders_at(fake, leonardo) == before


@on_a_loop
async def test_a_job_at_leonardo_can_be_taken_back_and_one_at_midjourney_cannot(
    leonardo: Studio, midjourney: Studio, fake: FakeProviders
) -> None:
    before = fake.books("leonardo")["cancelled"]
    job_id = await leonardo.place("slow [[seconds=60]]")
    async with leonardo.adapter() as adapter:
        assert await adapter.cancel(job_id)
        assert fake.books("leonardo")["cancelled"] == before + 1
        assert isinstance(await adapter.poll(job_id), Failed)
        assert not await adapter.cancel(job_id)
    async with midjourney.adapter() as adapter:
        assert not await adapter.cancel(await midjourney.place("slow [[seconds=60]]"))


@on_a_loop
async def test_a_callback_is_about_the_job_that_was_ordered(studio: Studio, fake: FakeProviders) -> None:
    told: asyncio.Queue[Any] = asyncio.Queue()

    def hear(request: Request) -> bytes:
        told.put_nowait(request.json)
        return answer()

    async with serving(hear) as ours, studio.adapter() as adapter:
        fake.change(leonardo_webhook={"url": f"{ours.url}/leonardo", "key": "webhook-key"})
        try:
            job_id = await studio.place("a lighthouse", callback_url=f"{ours.url}/token")
            async with asyncio.timeout(60):
                while adapter.job_of_callback(await told.get()) != job_id:
                    pass
        finally:
            fake.change(leonardo_webhook=None)


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("oversize=3000000", ResultTooLarge),
        ("oversize-unsaid=3000000", ResultTooLarge),
        ("mislabelled", ServiceUnavailable),
        ("cut-file", NetworkTimeout),
        ("redirect=http://169.254.169.254/latest/meta-data/", Forbidden),
    ],
)
@on_a_loop
async def test_a_file_that_must_not_be_kept_is_not(
    studio: Studio, word: str, kind: type[TaskError], tmp_path: Path
) -> None:
    (url, *_) = await studio.made(f"a lighthouse [[{word}]]")
    with pytest.raises(kind):
        await studio.fetch(url, tmp_path / "file", largest=2_000_000)
    assert not (tmp_path / "file").exists()
