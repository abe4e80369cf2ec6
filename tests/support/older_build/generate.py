"""Writes the archive of the older edition: `python -m tests.support.older_build.generate REVISION`."""

import argparse
import lzma
import subprocess

from tests.support.older_build import ARCHIVE, commit_of
from tests.support.servers.databases import PROJECT

SOURCES = ("services", "shared", "windlass", ":!services/api/page")
"""What the processes import. The api runs without the page."""


def archive_of(revision: str) -> bytes:
    command = ["git", "archive", "--format=tar", f"{revision}^{{commit}}", *SOURCES]
    return subprocess.run(command, cwd=PROJECT, check=True, stdout=subprocess.PIPE).stdout


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.support.older_build.generate", description=__doc__)
    parser.add_argument("revision", metavar="REVISION", help="a commit or tag of the last release")
    archive = archive_of(parser.parse_args().revision)
    ARCHIVE.write_bytes(lzma.compress(archive, preset=9 | lzma.PRESET_EXTREME))
    print(f"{ARCHIVE.relative_to(PROJECT)}: commit {commit_of(archive)}, {ARCHIVE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
