"""The older edition in the tests is a real one: the files of its commit, with functions of its own."""

import io
import lzma
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.support.older_build import ARCHIVE, OlderBuild
from tests.support.older_build.generate import archive_of
from tests.support.servers.databases import PROJECT
from windlass.shared.store import functions


def test_an_older_process_runs_the_older_code(older_build: OlderBuild) -> None:
    places = "from windlass.services.actors import guardian; from windlass.shared import db; print(db.__file__)"
    printed = older_build.python("-c", f"{places}; print(guardian.__file__); print(db.name_of('api'))").splitlines()
    assert [Path(line).is_relative_to(older_build.directory) for line in printed[:2]] == [True, True]
    assert printed[2] == f"windlass-api {older_build.schema}"


def test_the_older_functions_are_not_a_copy_of_todays(older_build: OlderBuild) -> None:
    older, today = (
        {path.name: path.read_text() for path in (root / "shared/store/sql").rglob("*.sql")}
        for root in (older_build.directory, PROJECT)
    )
    assert "claim_tasks.sql" in older
    assert older_build.schema != functions.schema() or older == today


def test_the_archive_has_the_files_of_an_earlier_commit(older_build: OlderBuild) -> None:
    if git("cat-file", "-e", f"{older_build.commit}^{{commit}}") != 0:
        pytest.skip(f"git does not have the commit {older_build.commit}")
    assert git("merge-base", "--is-ancestor", older_build.commit, "HEAD") == 0
    assert files_of(lzma.decompress(ARCHIVE.read_bytes())) == files_of(archive_of(older_build.commit))


def git(*arguments: str) -> int:
    try:
        return subprocess.run(["git", *arguments], cwd=PROJECT, capture_output=True, check=False).returncode
    except FileNotFoundError:
        return 127


def files_of(archive: bytes) -> dict[str, bytes]:
    """Contents by path; a link's content is its target."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        members = {member.name: (member, tar.extractfile(member) if member.isfile() else None) for member in tar}
        return {name: file.read() if file else member.linkname.encode() for name, (member, file) in members.items()}
