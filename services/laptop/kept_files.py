"""Small private files that outlive a run: passwords, keys, ports, lists of processes."""

import os
import secrets
import string
from collections.abc import Callable
from pathlib import Path
from typing import Final

ALPHABET: Final = string.ascii_letters + string.digits


def write_kept(path: Path, text: str) -> None:
    """Replaces the file as a whole, readable by its owner alone: nobody ever sees half of it."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def kept_secret(path: Path, invent: Callable[[], str]) -> str:
    """The secret in the file; on the first call one is made up and stays."""
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        secret = invent()
        write_kept(path, secret)
        return secret


def random_word(length: int) -> str:
    """Letters and digits only, so that it needs no quoting in a URL, a file or a shell."""
    return "".join(secrets.choice(ALPHABET) for _ in range(length))


def make_directory(path: Path, *, leads_to_postgres: bool = False) -> Path:
    """A directory of our own, closed to everybody else, whatever the umask says and whatever an older version left.

    One that leads to a Postgres that root runs under another account can be passed through, and not listed.
    """
    mode = 0o711 if leads_to_postgres and os.geteuid() == 0 else 0o700
    for missing in [each for each in reversed([path, *path.parents]) if not each.is_dir()]:
        missing.mkdir()
        missing.chmod(mode)
    path.chmod(mode)
    return path
