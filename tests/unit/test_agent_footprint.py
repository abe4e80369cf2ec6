"""What counts as an agent's: every file below its directory once, with a name or without, however well it is hidden."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.servers.private_servers import open_directory
from windlass.services.actors.subprocess import footprint
from windlass.services.actors.subprocess.footprint import DEEPEST, Footprint
from windlass.shared.process.accounts import account_for_agents

MEGABYTE = 2**20


def judged(place: Path, *, megabytes: int = 1, files: int = 1000) -> str | None:
    return Footprint(str(place), most_bytes=megabytes * MEGABYTE, most_files=files).look_once_more()


def write(path: Path, megabytes: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(os.urandom(int(megabytes * MEGABYTE)))


def test_everything_below_counts_together(tmp_path: Path) -> None:
    write(tmp_path / "a" / "b" / "one", 0.6)
    assert judged(tmp_path) is None
    write(tmp_path / "tmp" / "two", 0.6)
    assert judged(tmp_path) == "file_mb"
    assert judged(tmp_path, megabytes=2) is None
    assert judged(tmp_path, megabytes=2, files=4) == "files", "two files, three directories"


def test_a_file_with_two_names_is_there_once_and_a_hole_is_nothing(tmp_path: Path) -> None:
    write(tmp_path / "one", 0.6)
    (tmp_path / "again").hardlink_to(tmp_path / "one")
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(100 * MEGABYTE)
    assert judged(tmp_path) is None


def test_a_link_to_elsewhere_is_a_link(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere" / "large", 3)
    place = tmp_path / "place"
    place.mkdir()
    (place / "file").symlink_to(tmp_path / "elsewhere" / "large")
    (place / "folder").symlink_to(tmp_path / "elsewhere")
    assert judged(place) is None


def test_a_file_that_was_removed_counts_while_somebody_has_it_open(tmp_path: Path) -> None:
    looks = Footprint(str(tmp_path), most_bytes=MEGABYTE, most_files=None)
    with (tmp_path / "large").open("wb") as file:
        file.write(os.urandom(2 * MEGABYTE))
        file.flush()
        (tmp_path / "large").unlink()
        assert looks.look([]) is None
        assert Footprint(str(tmp_path), most_bytes=MEGABYTE, most_files=None).look([os.getpid()]) == "file_mb"


def test_a_place_that_is_moved_away_is_still_the_same(tmp_path: Path) -> None:
    place = tmp_path / "place"
    write(place / "one", 2)
    looks = Footprint(str(place), most_bytes=MEGABYTE, most_files=None)
    place.rename(tmp_path / "elsewhere")
    assert (looks.look([]), looks.look_once_more()) == ("file_mb", "file_mb")
    shutil.rmtree(tmp_path / "elsewhere")
    assert looks.look_once_more() is None


def test_directories_without_end_are_too_many(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d"] * (DEEPEST + 1))
    deep.mkdir(parents=True)
    assert judged(tmp_path) == "files"


def test_a_large_place_takes_several_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(footprint, "ENTRIES_AT_ONCE", 10)
    for number in range(35):
        (tmp_path / str(number)).touch()
    looks = Footprint(str(tmp_path), most_bytes=None, most_files=30)
    assert [looks.look([]) for _ in range(4)] == [None, None, None, "files"]


SHUT = """
import os, sys
from pathlib import Path
sys.path.append(sys.argv[1])
from windlass.services.actors.subprocess.footprint import Footprint
if len(sys.argv) > 3:
    os.setresgid(*[int(sys.argv[4])] * 3)
    os.setresuid(*[int(sys.argv[3])] * 3)
place = Path(sys.argv[2], "shut")
place.mkdir()
(place / "large").write_bytes(bytes(range(256)) * 8192)
place.chmod(0o300)
print(Footprint(sys.argv[2], most_bytes=2**20, most_files=None).look_once_more())
"""


def test_a_directory_that_is_shut_hides_nothing() -> None:
    """As an ordinary user, whom the kernel keeps out of it."""
    account = account_for_agents()
    lent = [str(account.uid), str(account.gid)] if account else []
    with open_directory() as place:
        place.chmod(0o777)
        command = [sys.executable, "-c", SHUT, str(Path(__file__).parents[2]), str(place), *lent]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd="/")
    assert done.stdout == "file_mb\n"
