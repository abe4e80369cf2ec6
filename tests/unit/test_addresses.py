"""Which addresses may be spoken to."""

from ipaddress import ip_address

import pytest

from windlass.shared.errors import Forbidden
from windlass.shared.providers.http.addresses import Allowances, check, fault_of_literal, is_public
from windlass.shared.settings import Settings


def _addresses(text: str) -> list[str]:
    return text.split()


PRIVATE = _addresses("""
    0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 127.0.0.1 127.255.255.254 168.63.129.16
    169.254.169.254 169.254.0.1 172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1
    198.18.0.1 198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255
    :: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:0:127.0.0.1
    64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b::10.0.0.1 64:ff9b:1::1 64:ff9b:1:7f00:1::
    2002:7f00:1:: 2002:a9fe:a9fe::1 2002:a00:1:: 2001::1 2001:0:7f00:1:: 2001:10::1 2001:db8::1 3fff::1
    100::1 5f00::1 fc00::1 fd00:ec2::254 fe80::1 fe80::1%eth0 fec0::1 ff02::1 ff0e::1
""")

PUBLIC = _addresses("""
    1.1.1.1 8.8.8.8 93.184.216.34 172.15.255.255 172.32.0.1 100.63.255.255 192.167.255.255 223.255.255.254
    2606:4700:4700::1111 2a00:1450:4001:80e::200e ::ffff:8.8.8.8 64:ff9b::808:808 2002:808:808::1
""")


@pytest.mark.parametrize("address", PRIVATE)
def test_nothing_but_the_internet_is_public(address: str) -> None:
    assert not is_public(ip_address(address))
    with pytest.raises(Forbidden, match=r"metadata\.example"):
        check("metadata.example", 443, [address], Allowances())


@pytest.mark.parametrize("address", PUBLIC)
def test_what_belongs_to_somebody_on_the_internet_is_public(address: str) -> None:
    assert is_public(ip_address(address))
    check("images.example", 443, [address], Allowances())


def test_one_private_address_among_several_refuses_the_name() -> None:
    with pytest.raises(Forbidden, match=r"both\.example"):
        check("both.example", 443, ["93.184.216.34", "10.0.0.7"], Allowances())


@pytest.mark.parametrize("plain", [False, True])
def test_a_refusal_says_who_was_refused_and_who_can_change_it_and_not_where_the_name_leads(
    caplog: pytest.LogCaptureFixture, plain: bool
) -> None:
    with pytest.raises(Forbidden) as caught:
        check("images.example", 443, ["192.168.1.5"], Allowances(), plain=plain)
    assert "images.example" in caught.value.message
    assert "allow_private" in caught.value.message
    assert "192.168" not in caught.value.message
    assert "192.168.1.5" in caplog.text, "the operator is told"
    assert caught.value.details == {"host": "images.example"}
    assert caught.value.kind == "permanent"


def test_a_public_address_is_nobody_s_business_either() -> None:
    with pytest.raises(Forbidden, match="https") as caught:
        check("images.example", 80, ["93.184.216.34"], Allowances(), plain=True)
    assert "93.184" not in caught.value.message


def test_what_the_operator_has_named_is_allowed_in_every_wrapping_and_nothing_beside_it() -> None:
    allowances = Allowances.of(Settings(network={"allow_private": ["10.1.0.0/16", "fd00:1::/32"]}))
    check("storage.internal", 80, ["10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::10.1.2.3", "fd00:1::9"], allowances)
    for address in ("10.2.0.1", "fd00:2::9", "127.0.0.1"):
        with pytest.raises(Forbidden):
            check("storage.internal", 80, [address], allowances)


def test_the_fake_provider_server_and_our_own_address_are_allowed_by_host_and_port_alone() -> None:
    allowances = Allowances.of(Settings(fake_providers_url="http://127.0.0.1:8801", port=8800))
    check("127.0.0.1", 8801, ["127.0.0.1"], allowances, plain=True)
    check("127.0.0.1", 8800, ["127.0.0.1"], allowances, plain=True)
    for host, port in (("127.0.0.1", 8802), ("127.0.0.1", 5432), ("127.0.0.2", 8801), ("localhost", 8801)):
        with pytest.raises(Forbidden):
            check(host, port, ["127.0.0.1"], allowances, plain=True)


def test_without_encryption_only_what_was_allowed_is_spoken_to() -> None:
    allowances = Allowances.of(Settings(network={"allow_private": ["10.1.0.0/16"]}))
    check("storage.internal", 80, ["10.1.2.3"], allowances, plain=True)
    check("images.example", 443, ["93.184.216.34"], allowances)
    with pytest.raises(Forbidden, match="https"):
        check("images.example", 80, ["93.184.216.34"], allowances, plain=True)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.1", "017700000001", "0", "10.0.0.1.", "169.254.169.254",
     "127\u30020\u30020\u30021", "[::1]", "[::]", "[fd00::1]", "[fe80::1%25eth0]", "[::ffff:127.0.0.1]",
     "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[::ffff:a9fe:a9fe]"],
)  # fmt: skip
def test_a_url_with_a_private_address_is_recognised_in_every_form(host: str) -> None:
    fault = fault_of_literal(f"https://{host}:8443/hook", Allowances())
    assert fault is not None
    assert "private address" in fault
    allowed = Allowances.of(Settings(network={"allow_private": ["0.0.0.0/0", "::/0"]}))
    assert fault_of_literal(f"https://{host}/hook", allowed) is None


def test_a_url_with_a_name_or_a_public_address_is_left_to_the_try() -> None:
    for url in ("https://localhost/", "http://10.example/", "https://8.8.8.8/", "https://[2606:4700:4700::1111]/hook"):
        assert fault_of_literal(url, Allowances()) is None
    assert "https" in str(fault_of_literal("http://8.8.8.8/", Allowances())), "it would be refused at every try"
