"""A try over real sockets: signed so that the standard's library takes it, and sent nowhere that is private."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from uuid import UUID, uuid4

import httpx
import pytest
from cryptography.exceptions import InvalidTag
from standardwebhooks import Webhook

from tests.support.providers.small_server import HANG, Reply, answer, on_a_loop, serving
from tests.unit.test_addresses import PRIVATE
from tests.unit.test_download import LOOPBACK
from windlass.services.actors.webhook.sending import LONGEST_EXCERPT, Answer, retry_after, send
from windlass.services.actors.worker.ending.retries import delay_after, ending_of_failure
from windlass.shared.errors import DeliveryFailed
from windlass.shared.providers.http.addresses import Allowances
from windlass.shared.sealing import seal, unseal
from windlass.shared.settings import Settings
from windlass.shared.store.tasks import Claimed

SECRETS = [f"whsec_{'A' * 43}=", f"whsec_{'B' * 43}="]
BODY = '{"type": "task.completed", "data": {"result": "grün"}}'
DELIVERY = UUID("0192f0c1-2f5e-7a3b-8c1d-0123456789ab")
TLS = httpx.create_ssl_context(trust_env=False)


async def sent(url: str, *, allowances: Allowances = LOOPBACK, seconds: float = 60, secrets: int = 1) -> Answer:
    return await send(url, DELIVERY, BODY, SECRETS[:secrets], allowances=allowances, tls=TLS, seconds=seconds)


async def answered(reply: Reply, *, seconds: float = 60) -> Answer:
    async with serving(lambda _: reply) as server:
        return await sent(server.url, seconds=seconds)


@pytest.mark.parametrize("secrets", [1, 2])
@on_a_loop
async def test_the_standards_own_library_verifies_what_arrives(secrets: int) -> None:
    async with serving(lambda _: answer(204)) as server:
        assert (await sent(f"{server.url}/hook?who=ann", secrets=secrets)).is_delivered
        (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/hook?who=ann")
    assert request.body == BODY.encode(), "byte for byte"
    for secret in SECRETS[:secrets]:
        Webhook(secret).verify(request.body, request.headers)
    assert request.headers["webhook-id"] == str(DELIVERY)
    assert request.headers["content-type"] == "application/json"


@pytest.mark.parametrize("address", [each for each in PRIVATE if "%" not in each])
@on_a_loop
async def test_no_private_address_is_spoken_to(address: str) -> None:
    host = f"[{address}]" if ":" in address else address
    for scheme in ("http", "https"):
        said = await sent(f"{scheme}://{host}:9/", allowances=Allowances())
        assert said.outcome == "forbidden", said


@pytest.mark.parametrize("host", ["127.1", "0x7f000001", "2130706433", "localhost", "[::ffff:127.0.0.1]"])
@on_a_loop
async def test_nor_under_another_spelling(host: str) -> None:
    async with serving(lambda _: answer(200)) as server:
        said = await sent(f"http://{host}:{server.port}/", allowances=Allowances())
        assert (said.outcome, server.connections) == ("forbidden", 0)


@on_a_loop
async def test_plain_http_is_for_allowed_addresses_alone() -> None:
    assert (await sent("http://93.184.216.34/")).outcome == "forbidden"


@pytest.mark.parametrize(
    "target",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://127.0.0.2:{port}/",
        "//127.0.0.2:{port}/",
        "http://127.0.0.1:{port}/again",
        "file:///etc/passwd",
    ],
)
@on_a_loop
async def test_no_redirect_is_followed(target: str) -> None:
    async with (
        serving(lambda _: answer(307, location=target.format(port=server.port))) as server,
        serving(lambda _: answer(200), host="127.0.0.2", port=server.port) as private,
    ):
        said = await sent(server.url)
        assert (said.outcome, said.status_code) == ("refused", 307)
        assert "redirect" in str(said.error)
        assert (len(server.requests), private.connections) == (1, 0)


@pytest.mark.parametrize("status", [200, 202, 204])
@on_a_loop
async def test_any_2xx_is_delivered(status: int) -> None:
    assert (await answered(answer(status))).is_delivered


@pytest.mark.parametrize("status", [301, 400, 404, 429, 500, 503])
@on_a_loop
async def test_nothing_else_is(status: int) -> None:
    said = await answered(answer(status, b"why"))
    assert (said.is_delivered, said.status_code, said.excerpt, said.wants_no_more) == (False, status, "why", False)


@on_a_loop
async def test_410_and_a_word_to_stop_mean_gone() -> None:
    assert (await answered(answer(410))).wants_no_more
    said = await answered(answer(200, webhook_delivery="disable"))
    assert (said.wants_no_more, said.is_delivered) == (True, False)


@on_a_loop
async def test_who_does_not_answer_in_time_is_unreachable() -> None:
    said = await answered(HANG, seconds=0.2)
    assert (said.outcome, said.status_code) == ("unreachable", None)
    assert (await answered(None)).outcome == "unreachable"


@on_a_loop
async def test_a_kilobyte_of_the_answer_is_kept_and_no_more_is_read() -> None:
    said = await answered(answer(200, "ü".encode() * 100_000))
    assert said.is_delivered
    assert said.excerpt is not None
    assert LONGEST_EXCERPT - 4 <= len(said.excerpt.encode()) <= LONGEST_EXCERPT
    broken = await answered(answer(500, b"\xff\x00" * 600))
    assert broken.excerpt is not None
    assert len(broken.excerpt.encode()) <= LONGEST_EXCERPT
    assert "\0" not in broken.excerpt


def test_retry_after_is_seconds_or_a_date_within_a_day() -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    assert retry_after("120", now) == 120
    assert retry_after(format_datetime(now + timedelta(seconds=60), usegmt=True), now) == 60
    assert retry_after("999999999", now) == 86_400
    assert [retry_after(said, now) for said in (None, "soon", "-5", "")] == [None] * 4


def test_the_schedule_is_the_standards_and_no_failure_is_the_providers() -> None:
    settings = Settings()
    schedules = settings.schedules_for("webhook", "http", None)
    failed = DeliveryFailed("the endpoint answered 429", status_code=429)
    hours = [delay_after(failed, failures, schedules) for failures in range(9)]
    assert hours == [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400]
    assert delay_after(DeliveryFailed("busy", retry_after=7), 3, schedules) == 7
    task = Claimed(
        task_id=uuid4(), claim_token=uuid4(), actor="webhook", provider="http", payload={}, checkpoint=None, attempt=1,
        retry_count=0, max_retries=9, interrupt_count=0, stall_count=0, rate_limited_count=0, timeout_seconds=30,
        retry_delays=None, concerns=0, job_open=False,
    )  # fmt: skip
    ending = ending_of_failure(task, failed, settings.retries, schedules)
    assert (ending.transition, ending.retry_cost) == ("retry", 1)
    assert not ending.rate_limited
    assert not ending.provider_failed


def test_a_sealed_secret_opens_for_its_own_endpoint_alone() -> None:
    key, mine, other = b"k" * 32, uuid4(), uuid4()
    sealed = seal(key, SECRETS[0], mine)
    assert SECRETS[0].encode() not in sealed
    assert unseal(key, sealed, mine) == SECRETS[0]
    assert seal(key, SECRETS[0], mine) != sealed
    for wrong_key, owner in ((key, other), (b"x" * 32, mine)):
        with pytest.raises(InvalidTag):
            unseal(wrong_key, sealed, owner)
