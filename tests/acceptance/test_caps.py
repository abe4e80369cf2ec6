"""What a client may send: everything else is refused with an error of its own, over real sockets, and never a 500."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, BinaryIO

import httpx
import pytest

from tests.support.an_api import an_api
from tests.support.installation import KEY, NOBODY, Client, Windlass
from tests.support.process_cpu import ProcessCpu
from tests.support.servers.private_servers import Servers

MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def windlass(servers: Servers, migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Windlass]:
    with an_api(servers, migrated_template, tmp_path_factory.mktemp("caps")) as windlass:
        yield windlass
    assert "Traceback" not in windlass.log(), "nothing that a client sends is an error of ours"


@pytest.fixture
def client(windlass: Windlass) -> Client:
    return windlass.client


@pytest.fixture(scope="module")
def hasty(windlass: Windlass) -> Client:
    """An api that does not wait for long, for those who let it wait."""
    return windlass.start_api(WINDLASS_BODY_SECONDS="2", WINDLASS_HEADER_SECONDS="7")


def port_of(client: Client) -> int:
    port = client.http.base_url.port
    assert port is not None
    return port


def send(client: Client, content: bytes, **headers: str) -> tuple[int, str]:
    response = client.http.post("/api/v1/tasks", content=content, headers=headers)
    return response.status_code, response.json().get("code", "")


def probe(result: Any) -> bytes:
    return json.dumps({"actor": "probe", "payload": {"result": result}}).encode()


def raw(client: Client, request: bytes, *, then_close: bool = False) -> tuple[int, bytes]:
    """Sends bytes as they are; the status and the body of the answer, read until the server hangs up or is silent."""
    with socket.create_connection(("127.0.0.1", port_of(client)), timeout=60) as connection:
        connection.sendall(request)
        if then_close:
            connection.shutdown(socket.SHUT_WR)
        answer = connection.makefile("rb")
        status = answer.readline().split()
        if not status:
            return 0, b""
        length = 0
        while line := answer.readline().strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        return int(status[1]), answer.read(length)


def head(*headers: str) -> bytes:
    lines = ["POST /api/v1/tasks HTTP/1.1", "Host: localhost", f"Authorization: Bearer {KEY}", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def test_a_body_of_two_megabytes_is_the_largest(client: Client) -> None:
    body = probe("")
    assert send(client, body + b" " * (2 * MEGABYTE - len(body)))[0] == 201
    assert send(client, body + b" " * (2 * MEGABYTE - len(body) + 1)) == (413, "body-too-large")


def test_a_payload_of_one_megabyte_is_the_largest(client: Client) -> None:
    overhead = len('{"result":""}')
    assert send(client, probe("x" * (MEGABYTE - overhead)))[0] == 201
    assert send(client, probe("x" * (MEGABYTE - overhead + 1))) == (413, "payload-too-large")


def test_a_body_that_grows_while_it_comes_is_counted(client: Client) -> None:
    def chunks() -> Iterator[bytes]:
        yield probe("")
        for _ in range(25):
            yield b" " * 100_000

    response = client.http.post("/api/v1/tasks", content=chunks())
    assert (response.status_code, response.json()["code"]) == (413, "body-too-large")


def test_a_length_that_is_announced_and_too_large_is_not_waited_for(client: Client) -> None:
    status, body = raw(client, head(f"Content-Length: {10 * MEGABYTE}"))
    assert (status, json.loads(body)["code"]) == (413, "body-too-large")


def test_a_body_that_never_comes_is_given_up(hasty: Client) -> None:
    status, body = raw(hasty, head("Content-Length: 100") + b'{"actor":')
    assert (status, json.loads(body)["code"]) == (408, "body-incomplete")


def test_a_head_that_never_comes_whole_is_given_up_and_who_is_only_quiet_is_not(hasty: Client) -> None:
    """Also when it comes byte by byte, after a request on the same connection, and when nothing comes at all."""
    task_id = hasty.submit(delay_seconds=3600)["task_id"]
    with ExitStack() as stack:
        quiet, second, half, trickling, silent = (
            stack.enter_context(socket.create_connection(("127.0.0.1", port_of(hasty)), timeout=60)) for _ in range(5)
        )
        answers = {each: stack.enter_context(each.makefile("rb")) for each in (quiet, second)}
        stream = stack.enter_context(hasty.http.stream("GET", f"/api/v1/tasks/{task_id}/stream"))
        told = stream.iter_lines()
        assert next(told).startswith("retry:")
        for each in (quiet, second):
            assert live(each, answers[each]) == 200
        second.sendall(LIVE[:-2])
        half.sendall(head()[:-2])
        trickle_until_closed(trickling, head()[:-2])
        for given_up in (half, silent, second):
            assert hung_up(given_up)
        assert live(quiet, answers[quiet]) == 200, "it was quiet for longer than a head may take"
        hasty.cancel(task_id)
        assert "event: cancelled" in told, "a stream stays open for as long as it likes"


@pytest.mark.parametrize(
    "request_",
    [
        head(f"X-Long: {'a' * 9_000}"),
        head(*(f"X-{number}: {'a' * 7_000}" for number in range(10))),
        head(*("X:" for _ in range(20_000))),
        head(f"Cookie: windlass_session={'a' * 120_000}"),
        head("Transfer-Encoding: chunked") + b"2\r\n{}\r\n0\r\n" + b"X: a\r\n" * 20_000 + b"\r\n",
        head("Transfer-Encoding: chunked") + b"2;" + b"a" * 1_000_000 + b"\r\n{}\r\n0\r\n\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
    ids=["one header", "many headers", "tiny headers", "cookie", "trailers", "chunk extension", "path"],
)
def test_a_head_that_is_too_large_is_refused(client: Client, request_: bytes) -> None:
    status, body = raw(client, request_)
    assert (status, json.loads(body)["code"]) == (431, "head-too-large")


def test_a_head_without_an_end_is_refused_as_soon_as_it_is_too_large(client: Client) -> None:
    with socket.create_connection(("127.0.0.1", port_of(client)), timeout=60) as connection:
        connection.sendall(head()[:-2] + b"X-Endless: ")
        connection.sendall(b"a" * 1_000_000)
        answer = connection.makefile("rb")
        assert int(answer.readline().split()[1]) == 431
        assert "head-too-large" in answer.read().decode(), "the rest was dropped, so that the answer arrives"


def test_a_head_of_nearly_64_kilobytes_is_read(client: Client) -> None:
    headers = {f"X-{number}": "a" * 8_000 for number in range(8)}
    assert client.http.get("/api/v1/tasks", headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Cookie", 'windlass_session="' + "\\" * 8_000 + '"'),
        ("Cookie", "a=b;" * 2_000),
        ("Range", f"bytes={' ' * 8_000}x"),
        ("Traceparent", "00-" * 2_700),
        ("If-None-Match", "W/," * 2_700),
        ("Accept", "text/csv;q=" * 700),
        ("Content-Type", "application/json;" + "a=b;" * 2_000),
        ("Idempotency-Key", "a" * 8_000),
        ("X-Forwarded-For", "10.0.0.1," * 900),
        ("X-Request-ID", "a." * 4_000),
        ("Last-Event-ID", "A" * 8_000),
        ("Authorization", "Bearer " + "wl_" * 2_700),
        ("Origin", "http://" + "a." * 4_000),
    ],
)
def test_no_header_takes_long_to_read(windlass: Windlass, name: str, value: str) -> None:
    assert windlass.api is not None
    api = ProcessCpu(windlass.api.pid)
    for path in ("/api/v1/tasks", "/api/v1/session", f"/api/v1/media/{NOBODY}", f"/api/v1/tasks/{NOBODY}/stream"):
        before = api.seconds()
        httpx.get(f"{windlass.url}{path}", headers={name: value}, timeout=60, trust_env=False)
        assert api.seconds() - before < 0.25, (name, path)


LIVE = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"


def live(connection: socket.socket, answer: BinaryIO) -> int:
    connection.sendall(LIVE)
    status, length = int(answer.readline().split()[1]), 0
    while (line := answer.readline().lower()) != b"\r\n":
        length = int(line.partition(b":")[2]) if line.startswith(b"content-length") else length
    answer.read(length)
    return status


def trickle_until_closed(connection: socket.socket, request: bytes) -> None:
    connection.settimeout(0.1)
    for number in range(len(request)):
        try:
            connection.sendall(request[number : number + 1])
            if connection.recv(1) == b"":
                return
        except TimeoutError:
            continue
        except ConnectionError:
            return
    raise AssertionError("it may take as long as it likes")


def hung_up(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize(
    "request_",
    [
        head("Content-Length: -1"),
        head("Content-Length: many"),
        head("Content-Length: 2", "Content-Length: 3") + b"{}",
        head("Transfer-Encoding: chunked") + b"zz\r\n{}\r\n0\r\n\r\n",
        b"GET\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
def test_a_request_that_is_no_http_is_refused(client: Client, request_: bytes) -> None:
    status, _ = raw(client, request_, then_close=True)
    assert status in {0, 400}, "an answer that says so, or none"


def test_a_length_that_lies_low_cuts_the_body(client: Client) -> None:
    body = probe("")
    status, _ = raw(client, head(f"Content-Length: {len(body) - 2}") + body)
    assert status == 400, "what is left over is no second request, and the server's parser says so first"


def test_a_client_that_leaves_in_the_middle_of_its_body_harms_nobody(windlass: Windlass) -> None:
    with socket.create_connection(("127.0.0.1", windlass.port)) as connection:
        connection.sendall(head("Content-Length: 100") + b'{"actor":')
    assert windlass.client.http.get("/health/live").status_code == 200


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", (400, "empty-body")),
        (b"{not json", (400, "malformed-json")),
        (b'{"actor": "probe"} {}', (400, "malformed-json")),
        (b'{"actor": "\xff"}', (400, "malformed-json")),
        (b'{"actor": "\xc3("}', (400, "malformed-json")),
        (b'{"actor": "\\ud800"}', (400, "malformed-json")),
        ('{"actor": "probe"}'.encode("utf-16"), (400, "malformed-json")),
        (b'{"actor": NaN}', (400, "malformed-json")),
        (b'{"actor": "a\0b"}', (400, "malformed-json")),
        (b'{"actor": "a\\u0000b"}', (422, "nul-character")),
        (b'{"actor": "probe", "payload": {"result": 1e400}}', (422, "number-too-large")),
        (b'{"actor": "probe", "payload": {"result": -1e400}}', (422, "number-too-large")),
        (b'{"actor": "probe", "payload": {"result": ' + b"9" * 400 + b"}}", (422, "number-too-large")),
        (b'{"actor": "probe", "payload": {"result": ' + b"9" * 10_000 + b"}}", (422, "number-too-large")),
        (b'{"actor": "probe", "priority": ' + b"9" * 400 + b"}", (422, "number-too-large")),
        (b"[" * 65 + b"]" * 65, (422, "nested-too-deep")),
        (b"[" * 100_000 + b"]" * 100_000, (422, "nested-too-deep")),
        (b"[" * 100_000, (422, "nested-too-deep")),
        (b"[]", (422, "invalid-task")),
        (b"7", (422, "invalid-task")),
    ],
)
def test_what_cannot_be_read_is_refused(client: Client, content: bytes, expected: tuple[int, str]) -> None:
    assert send(client, content, **{"Content-Type": "application/json"}) == expected


@pytest.mark.parametrize("number", [1e308, -1.5e-300, 2**64 - 1, -(2**63), 0.1])
def test_large_numbers_come_back_as_they_were(client: Client, number: float) -> None:
    """Though Postgres writes a large one out, digit by digit."""
    response = client.http.post("/api/v1/tasks", content=probe(number))
    assert response.status_code == 201
    came_back = client.get(response.json()["task_id"])["payload"]["result"]
    assert came_back == number or float(came_back) == number


@pytest.mark.parametrize("kind", ["text/plain", "multipart/form-data", "image/png"])
def test_a_body_declared_as_something_else_is_refused(client: Client, kind: str) -> None:
    assert send(client, probe(1), **{"Content-Type": kind}) == (415, "unsupported-media-type")


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8", "application/task+json"])
def test_json_by_any_of_its_names_is_taken(client: Client, kind: str) -> None:
    assert send(client, probe(1), **{"Content-Type": kind})[0] == 201


@pytest.mark.parametrize("path", ["/api/v1/tasks/batch", "/api/v1/tasks/summarize", "/api/v1/tasks/requeue-orphaned"])
def test_every_body_is_read_with_the_same_care(client: Client, path: str) -> None:
    def sent(**request: Any) -> tuple[int, str]:
        response: httpx.Response = client.http.post(path, **request)
        return response.status_code, response.json()["code"]

    assert sent(content=b"x" * (2 * MEGABYTE + 1)) == (413, "body-too-large")
    assert sent(content=b'"\xff"') == (400, "malformed-json")
    assert sent(content=b"{}", headers={"Content-Type": "text/plain"}) == (415, "unsupported-media-type")
