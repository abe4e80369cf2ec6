"""The guarded client on real sockets: whom it connects to, what it calls them, and whom it refuses."""

import ipaddress
import shutil
import ssl
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.support.providers.small_server import answer, on_a_loop, serving
from windlass.shared.errors import Forbidden
from windlass.shared.providers.http.addresses import Allowances
from windlass.shared.providers.http.network import Resolve, open_client

LOOPBACK = Allowances((ipaddress.ip_network("127.0.0.1/32"),))


def resolving_to(*answers: list[str]) -> tuple[Resolve, list[str]]:
    """A name server that gives these answers one after the other, and a list of what it was asked."""
    asked: list[str] = []

    async def resolve(host: str) -> list[str]:
        asked.append(host)
        return answers[min(len(asked), len(answers)) - 1]

    return resolve, asked


def a_certificate_for(name: str, directory: Path) -> tuple[Path, Path]:
    key, certificate = directory / "key.pem", directory / "certificate.pem"
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    subject = ("-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}")
    command = ["openssl", "req", "-x509", *curve, *subject, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    return key, certificate


@on_a_loop
async def test_a_name_is_resolved_once_and_that_address_is_connected_to() -> None:
    resolve, asked = resolving_to(["127.0.0.1"], ["127.0.0.9"])
    async with (
        serving(lambda _: answer(body=b"the first")) as first,
        serving(lambda _: answer(body=b"the second"), host="127.0.0.9", port=first.port) as second,
        open_client(LOOPBACK, timeout_seconds=60, resolve=resolve) as http,
    ):
        url = f"http://images.example:{first.port}/cat.png"
        assert (await http.get(url)).text == "the first"
        assert asked == ["images.example"]
        assert first.requests[0].headers["host"] == f"images.example:{first.port}"
        # The next request asks anew, is told another address, and does not go there.
        with pytest.raises(Forbidden, match=r"images\.example is at a private address"):
            await http.get(url)
        assert second.connections == 0


@on_a_loop
async def test_a_private_address_is_never_connected_to() -> None:
    async with (
        serving(lambda _: answer()) as server,
        open_client(Allowances(), timeout_seconds=60) as http,
    ):
        for host in ("127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "0.0.0.0", "[::ffff:127.0.0.1]"):
            for scheme in ("http", "https"):
                with pytest.raises(Forbidden):
                    await http.get(f"{scheme}://{host}:{server.port}/")
        for host in ("169.254.169.254", "[fd00:ec2::254]", "[64:ff9b::7f00:1]", "[64:ff9b::a9fe:a9fe]"):
            with pytest.raises(Forbidden):
                await http.get(f"http://{host}/latest/meta-data/")
        assert server.connections == 0


@on_a_loop
async def test_a_name_with_one_private_address_is_refused_whole() -> None:
    resolve, _ = resolving_to(["93.184.216.34", "127.0.0.1"])
    async with open_client(Allowances(), timeout_seconds=60, resolve=resolve) as http:
        with pytest.raises(Forbidden):
            await http.get("https://both.example/")


@on_a_loop
async def test_an_address_that_does_not_answer_leaves_time_for_the_next() -> None:
    allowances = Allowances((ipaddress.ip_network("127.0.0.0/8"),))
    resolve, _ = resolving_to(["127.0.0.77", "127.0.0.1"])
    async with (
        serving(lambda _: answer(body=b"reached")) as server,
        open_client(allowances, timeout_seconds=60, resolve=resolve) as http,
    ):
        assert (await http.get(f"http://two.example:{server.port}/")).text == "reached"


@on_a_loop
async def test_an_unknown_name_is_a_failed_connect() -> None:
    async def resolve(host: str) -> list[str]:
        raise OSError("Name or service not known")

    async with open_client(Allowances(), timeout_seconds=60, resolve=resolve) as http:
        with pytest.raises(httpx.ConnectError, match=r"nowhere\.example"):
            await http.get("https://nowhere.example/")


@on_a_loop
async def test_no_proxy_of_the_environment_and_no_redirect_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        serving(lambda _: answer()) as elsewhere,
        serving(lambda _: answer(302, location=elsewhere.url)) as server,
    ):
        monkeypatch.setenv("HTTP_PROXY", elsewhere.url)
        monkeypatch.setenv("ALL_PROXY", elsewhere.url)
        async with open_client(LOOPBACK, timeout_seconds=60) as http:
            response = await http.get(server.url)
        assert (response.status_code, elsewhere.connections) == (302, 0)


@on_a_loop
async def test_no_connection_is_used_for_two_requests() -> None:
    async with (
        serving(lambda _: answer(connection="keep-alive")) as server,
        open_client(LOOPBACK, timeout_seconds=60) as http,
    ):
        for _ in range(2):
            await http.get(server.url)
        assert server.connections == 2


@pytest.mark.skipif(not shutil.which("openssl"), reason="needs the openssl command to make a certificate")
@on_a_loop
async def test_the_certificate_is_checked_against_the_name_although_an_address_is_connected_to(tmp_path: Path) -> None:
    key, certificate = a_certificate_for("images.example", tmp_path)
    names: list[str | None] = []
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(certificate, key)
    ours.sni_callback = lambda _socket, name, _context: names.append(name)
    theirs = ssl.create_default_context(cafile=certificate)
    resolve, _ = resolving_to(["127.0.0.1"])
    async with (
        serving(lambda _: answer(body=b"safe"), tls=ours) as server,
        open_client(LOOPBACK, timeout_seconds=60, resolve=resolve, tls=theirs) as http,
    ):
        assert (await http.get(f"https://images.example:{server.port}/")).text == "safe"
        assert names == ["images.example"]
        with pytest.raises(httpx.ConnectError):
            await http.get(f"https://other.example:{server.port}/")
