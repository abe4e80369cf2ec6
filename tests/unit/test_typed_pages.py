"""What the pages show is read by a strict type checker, as their readers' own is: it knows what an actor returns."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.installation import PROJECT
from tests.support.pages import files_of

PAGES = (
    "adding_an_actor.md",
    "coming_from_dramatiq.md",
    "coming_from_celery.md",
    "coming_from_temporal.md",
    "workflows.md",
    "../README.md",
)
ASKED = """
from our_actors import count, translate
from windlass import AsyncClient, Client

with Client() as client:
    reveal_type(client.run(translate, text="hi").result)
    reveal_type(client.submit(count, {"text": "hi"}, priority=1).result)
    reveal_type(translate.send(text="hi").result)
    reveal_type(client.run("translate", {"text": "hi"}).result)
    client.run(translate, text="hi").result.append("!")


async def ask(client: AsyncClient) -> None:
    reveal_type((await client.run(translate, text="hi")).result)
"""


def test_a_type_checker_knows_what_an_actor_returns(tmp_path: Path) -> None:
    shown = {name: code for page in PAGES for name, code in files_of(page).items() if name.endswith(".py")}
    for name, code in {**shown, "asked.py": ASKED}.items():
        (tmp_path / name).write_text(code)
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", "cache", *sorted(shown), "asked.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    said = checked.stdout.splitlines()
    assert [line.partition("Revealed type is ")[2].strip('"') for line in said if "note: Revealed" in line] == [
        "str",
        "dict[str, int]",
        "str",
        "Any",
        "str",
    ]
    errors = [line for line in said if ": error: " in line]
    assert [error.partition(" error: ")[2] for error in errors] == ['"str" has no attribute "append"  [attr-defined]']
