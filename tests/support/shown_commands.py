"""The commands that a page shows, as a shell reads them: bash runs the page's blocks where no program is to be found,
and what it looks for in vain is written down, word by word."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.support.pages import NAMED_BLOCK, page

BLOCK = re.compile(r"^( *)```(?:sh|bash|shell|console)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
NOTES = "notes"
ANSWER = "01a1e216-aa70-7000-8000-000000000000"
"""What a program prints that is not there, for a page that keeps it in a variable."""

# A note is one write: the two ends of a pipe take theirs at the same time.
PROLOGUE = f"""
note() {{ printf '%s\\0' "$BLOCK" "$@" '' >>"$OLDPWD/{NOTES}"; echo {ANSWER}; }}
command_not_found_handle() {{ note "$@"; }}
kill() {{ note kill "$@"; }}
PATH=/nowhere
set -u
"""


@dataclass(frozen=True)
class Command:
    """`block` counts the page's blocks from 1."""

    page: str
    block: int
    words: tuple[str, ...]

    @property
    def program(self) -> str:
        return self.words[0]


def blocks_of(name: str) -> list[str]:
    """Those that are typed into a shell; one with a file's name before it is that file."""
    text = page(name)
    files = set(NAMED_BLOCK.findall(text))
    found = [(indent, body) for indent, body in BLOCK.findall(text) if all(body != content for _, content in files)]
    return [re.sub(rf"^{indent}", "", body, flags=re.MULTILINE) for indent, body in found]


def commands_of(name: str, place: Path) -> list[Command]:
    """`place` is an empty directory. Variables live on from block to block, as they do in a terminal, and one that the
    page uses before it sets it is an error: every page stands by itself."""
    blocks = blocks_of(name)
    scripts = sorted(
        {each for body in blocks for each in re.findall(r"^(?:\. )?([\w.-]+/[\w./-]+)", body, re.MULTILINE)}
    )
    shell = place / "shell"
    for script in scripts:
        (shell / script).parent.mkdir(parents=True, exist_ok=True)
        (shell / script).write_text(f'note {script} "$@"\n')
    shell.mkdir(exist_ok=True)
    functions = "".join(f'{script}() {{ note {script} "$@"; }}\n' for script in scripts)
    numbered = "".join(f"BLOCK={number}\n{body}\n" for number, body in enumerate(blocks, start=1))
    done = subprocess.run(
        ["/bin/bash", "-c", f'cd "$PWD/shell"\n{PROLOGUE}{functions}{numbered}'],
        cwd=place,
        env={},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert not done.stderr, f"{name}: {done.stderr}"
    notes = place / NOTES
    calls = notes.read_text().split("\0\0")[:-1] if notes.exists() else []
    return [Command(name, int(number), tuple(words)) for number, *words in (call.split("\0") for call in calls)]
