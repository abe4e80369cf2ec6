"""One file on its way from the API to the disk: whole, as it was made, and over no other."""

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import httpx

from windlass.client.errors import UnreadableAnswer
from windlass.client.problems import api_error
from windlass.client.target import Target

EXTENSION: Final = re.compile(r'filename="[^"]*(\.[0-9A-Za-z]{1,8})"')
TIMEOUT_SECONDS: Final = 30.0


class IsThere(Exception):
    """The very same file was saved before."""


class Download:
    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._sha256 = response.headers.get("etag", "").strip('"')
        self.media_type: str = response.headers.get("content-type", "")
        named = EXTENSION.search(response.headers.get("content-disposition", ""))
        self.extension = named[1] if named else ""

    def keep(self, path: Path, *, overwrite: bool) -> None:
        """Written beside its place and put there whole; IsThere when it was there, FileExistsError for another one."""
        if path.exists() and not overwrite:
            self._refuse(path)
        draft = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            self._write(draft)
            if overwrite:
                draft.replace(path)
            else:
                os.link(draft, path)  # which, unlike a rename, takes nobody's place
        except FileExistsError:
            self._refuse(path)
        finally:
            draft.unlink(missing_ok=True)

    def _refuse(self, path: Path) -> None:
        if digest_of(path) == self._sha256:
            raise IsThere
        raise FileExistsError(f"{path} is there and holds something else; --overwrite replaces it")

    def _write(self, draft: Path) -> None:
        digest = hashlib.sha256()
        with draft.open("xb") as file:
            for piece in self._response.iter_bytes():
                digest.update(piece)
                file.write(piece)
        if self._sha256 and digest.hexdigest() != self._sha256:
            raise UnreadableAnswer("what arrived is not the file that was sent: try again")


@contextmanager
def download(target: Target, path: str) -> Iterator[Download]:
    """Raises what the API answers instead of a file."""
    with httpx.Client(**target.settings()) as http:
        try:
            with http.stream("GET", path) as response:
                if response.status_code != httpx.codes.OK:
                    response.read()
                    raise api_error(response.status_code, response.content, response.headers.get("retry-after"))
                yield Download(response)
        except httpx.RequestError as error:
            raise target.unreachable(error) from error


def digest_of(path: Path) -> str:
    with suppress(IsADirectoryError), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
    return ""
