"""Which files of the machine a configured command needs to run: its program, where that is installed, and its files."""

import os
from collections.abc import Iterator
from pathlib import Path

from windlass.shared.process.accounts import Account

SYSTEM = Path("/usr")
LINKS_AT_MOST = 40
PROGRAM_FOLDERS = {"bin", "sbin", "libexec"}


def files_of(command: tuple[str, ...]) -> tuple[str, ...]:
    """Outside the system's own directories, and nothing twice: what stands inside another of them comes with it."""
    named = (Path(each) for each in command[1:] if each.startswith("/"))
    needed = {path for path in (*_steps(Path(command[0])), *named) if path.exists() and not _is_everybodys(path)}
    return tuple(sorted(str(path) for path in needed if needed.isdisjoint(path.parents)))


def closed_to(account: Account, command: tuple[str, ...], directory: Path) -> Path | None:
    """The first of what the command needs that this account may not read, its own directory included."""
    if not account.can_reach(directory):
        return directory
    named = (Path(each) for each in command if each.startswith("/"))
    return next((path for path in named if path.exists() and not account.can_read(path)), None)


def _steps(program: Path) -> Iterator[Path]:
    """From the name that was configured, over every link, to the program itself."""
    for _ in range(LINKS_AT_MOST):
        yield program
        yield from _installation(program)
        if not program.is_symlink():
            return
        program = Path(os.path.normpath(program.parent / program.readlink()))


def _installation(program: Path) -> Iterator[Path]:
    """The directory with the program's libraries. Not a home, which holds so much else: there the file alone."""
    if program.parent.name not in PROGRAM_FOLDERS:
        return
    prefix = program.parent.parent
    if prefix.name == ".local" or _is_home(prefix) or prefix == Path("/"):
        return
    yield prefix
    # A virtual environment says where the interpreter is that it was made from.
    configuration = prefix / "pyvenv.cfg"
    if configuration.is_file():
        for line in configuration.read_text(errors="replace").splitlines():
            name, _, value = line.partition("=")
            if name.strip() == "home":
                yield from _installation(Path(value.strip()) / "python")


def _is_home(path: Path) -> bool:
    return path == Path("/root") or path.parent == Path("/home")


def _is_everybodys(path: Path) -> bool:
    """A part of the system, or so much of the machine that naming it must be a mistake."""
    return path.resolve().is_relative_to(SYSTEM) or len(path.parts) <= 1 or _is_home(path)
