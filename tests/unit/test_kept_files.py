"""What a data directory remembers."""

import socket
import stat
from pathlib import Path

from services.cli.kept_files import kept_secret, random_word, write_kept
from services.cli.ports import CANDIDATES, kept_port


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
