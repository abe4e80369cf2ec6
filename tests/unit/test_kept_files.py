"""What a data directory remembers."""

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.installation import PROJECT
from windlass.services.laptop import ports
from windlass.services.laptop.data_directory import locked
from windlass.services.laptop.kept_files import kept_secret, make_directory, random_word, write_kept
from windlass.services.laptop.ports import CANDIDATES, free_port, kept_port


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


ASK_FOR = """
import sys
from windlass.services.laptop import ports
ports.CANDIDATES = range(int(sys.argv[1]), int(sys.argv[1]) + 1)
print(ports.free_port())
"""


def test_a_port_is_given_once_although_nobody_listens_there_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    monkeypatch.setattr(ports, "CANDIDATES", range(port, port + 1))
    with pytest.raises(OSError, match="no free port"):
        free_port()
    command = [sys.executable, "-c", ASK_FOR, str(port)]
    elsewhere = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert (elsewhere.returncode, elsewhere.stdout) == (1, "")
    assert "no free port" in elsewhere.stderr


def test_who_was_given_many_ports_keeps_the_last_ones_alone() -> None:
    given = [free_port() for _ in range(ports.MOST_CLAIMS + 1)]
    assert len(set(given)) == len(given)
    assert len(ports._claims) == ports.MOST_CLAIMS
    assert not ports.claim(given[-1])


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
