"""What a data directory remembers."""

import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from windlass.services.laptop.data_directory import locked
from windlass.services.laptop.kept_files import kept_secret, make_directory, random_word, write_kept
from windlass.services.laptop.ports import CANDIDATES, kept_port


def test_a_secret_is_made_once_and_private(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    secret = kept_secret(path, lambda: random_word(32))
    assert len(secret) == 32
    assert secret.isalnum()
    assert kept_secret(path, lambda: "another") == secret
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_kept(path, "old")
    with path.open() as reader:
        write_kept(path, "new, and longer")
        assert reader.read() == "old"
    assert path.read_text() == "new, and longer"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_port_is_kept_until_somebody_else_has_it(tmp_path: Path) -> None:
    path = tmp_path / "port"
    port = kept_port(path)
    assert port in CANDIDATES
    assert kept_port(path) == port
    with socket.create_server(("127.0.0.1", port)):
        assert kept_port(path) != port


@pytest.fixture(params=[0o022, 0o077], ids=["open", "private"])
def _umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("_umask")
def test_directories_are_private_but_for_the_way_to_a_postgres_of_another_account(tmp_path: Path) -> None:
    passable = 0o711 if os.geteuid() == 0 else 0o700
    data = tmp_path / "above" / "data"
    with locked(data):
        assert mode(make_directory(data / "rabbitmq" / "home")) == 0o700
        assert mode(make_directory(data / "postgres", leads_to_postgres=True)) == passable
    assert [mode(each) for each in (data.parent, data, data / "rabbitmq")] == [passable, passable, 0o700]


def test_what_an_older_version_left_open_is_closed_and_what_is_somebody_s_own_is_not(tmp_path: Path) -> None:
    opened = [tmp_path / name for name in ("media", "fake_providers", "rabbitmq", "somebody")]
    for each in (tmp_path, *opened):
        each.mkdir(exist_ok=True)
        each.chmod(0o755)
    with locked(tmp_path):
        make_directory(tmp_path / "rabbitmq")
    assert [mode(each) for each in (tmp_path, *opened)] == [0o755, 0o700, 0o700, 0o700, 0o755]
