"""The edition before this one, as real processes: its own Python, migrations and SQL functions."""

import io
import lzma
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from tests.support.installation import SERVICES
from tests.support.servers.private_servers import open_directory

ARCHIVE = Path(__file__).parent / "edition.tar.xz"


class OlderBuild:
    """The unpacked sources of the older edition.

    `migrate` brings an empty database to the older schema. To start an older process, pass `environment`:
    `Windlass.start("actors", **older_build.environment)`.
    """

    def __init__(self, directory: Path, commit: str) -> None:
        self.directory = directory
        self.commit = commit
        self.environment = {"PYTHONPATH": str(directory), "PYTHONSAFEPATH": "1"}
        """Python finds the older sources first. Without the second variable it would prefer the working directory."""
        self.services = tuple(name for name in SERVICES if (directory / "services" / name).is_dir())

    @cached_property
    def schema(self) -> str:
        """The Postgres schema of the older function set."""
        return self.python("-c", "from windlass.shared.store import functions; print(functions.schema())").strip()

    def migrate(self, database_url: str) -> None:
        self.python("-m", "windlass.services.admin.migrate", WINDLASS_DATABASE_URL=database_url)

    def python(self, *arguments: str, **settings: str) -> str:
        """Runs Python on the older sources and returns its standard output."""
        environment = {**os.environ, **self.environment, **settings}
        command = [sys.executable, *arguments]
        return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout


@contextmanager
def unpacked() -> Iterator[OlderBuild]:
    archive = lzma.decompress(ARCHIVE.read_bytes())
    with open_directory() as directory:
        subprocess.run(["tar", "--extract", f"--directory={directory}"], input=archive, check=True)
        yield OlderBuild(directory, commit_of(archive))


def commit_of(archive: bytes) -> str:
    """`git archive` writes the commit into the header of the archive."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        return files.pax_headers["comment"]
