"""mypy --strict accepts every Python example of the pages, and knows what an actor takes and returns."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.installation import PROJECT
from tests.support.pages import files_of, unnamed_python_of

TOLD = re.compile(r"([\w.]+:\d+): (error|note): (?:Revealed type is \"(.*)\"|.* \[([\w-]+)\])$")
PAGES = ("../README.md", *sorted(each.name for each in (PROJECT / "docs").glob("*.md")))
OF_THE_TREE = ("shared/", "services/")
"""Files that a page adds to Windlass itself: the test that follows the page checks them in a copy of the tree."""
CODE_BEFORE_THE_MOVE = {"coming_from_celery.md", "coming_from_temporal.md"}
"""Their unnamed blocks are the reader's present code, of packages that are not installed here."""
ASKED = """
from haiku import haiku
from our_actors import count, translate
from windlass import AsyncClient, Client, Context, actor


@actor(timeout_seconds=60)
def by_name(text: str, *, context: Context) -> int:
    return len(text)


with Client() as client:
    reveal_type(client.run(translate, text="hi").result)  # str
    reveal_type(client.run(translate, "hi", to="de").result)  # str
    reveal_type(client.run(translate, text="hi", timeout=60).result)  # str
    reveal_type(client.submit(count, {"text": "hi"}, priority=1).result)  # dict[str, int]
    reveal_type(client.run(translate, {"text": "hi"}, priority=1).result)  # str
    client.run(translate, text="hi", priority=1)  # error: call-overload
    reveal_type(translate.send(text="hi").result)  # str
    reveal_type(by_name.send(text="hi").result)  # int
    reveal_type(client.run(by_name, text="hi", priority=1).result)  # int
    reveal_type(client.run("translate", {"text": "hi"}).result)  # Any
    client.run(translate, text="hi").result.append("!")  # error: attr-defined
    client.run(haiku, topik=3)  # error: call-overload
    client.run(haiku, topic=3)  # error: call-overload
    client.submit(haiku, topik="the sea")  # error: call-overload
    client.run(haiku)  # error: call-overload
    client.run(count, txet="hi")  # error: call-overload
    client.run("translate", priorty=1)  # error: call-overload
    haiku.send(topik="the sea")  # error: call-overload
    count.send(3)  # error: arg-type
    count("one", "two")  # error: call-arg


async def ask(client: AsyncClient) -> None:
    reveal_type((await client.run(translate, text="hi")).result)  # str
    await client.run(haiku, topik=3)  # error: call-overload


def of_the_model(text: str) -> tuple[str, int]:
    return text, 1


async def awaited(text: str) -> str:
    return text


@actor
async def steps(context: Context, text: str) -> int:
    reveal_type(await context.step("one", awaited, text))  # str
    context.step("two", awaited, text)  # error: unused-coroutine
    await context.step("three", awaited, 3)  # error: call-overload
    return len(context.step("four", awaited, text))  # error: arg-type


@actor
def plain_steps(context: Context, text: str) -> int:
    reveal_type(context.step("one", of_the_model, text))  # tuple[str, int]
    return 1
"""


def test_a_type_checker_knows_what_an_actor_returns(tmp_path: Path) -> None:
    shown = shown_python()
    for name, code in {**shown, "asked.py": ASKED}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(code)
    strictly = ("--strict", "--explicit-package-bases", "--cache-dir", "cache")
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *strictly, *sorted(shown), "asked.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    told: dict[int, str] = {}
    for line in checked.stdout.splitlines():
        if found := TOLD.match(line):
            place, kind, revealed, code = found.groups()
            assert place.startswith("asked.py:"), line
            told[int(place.partition(":")[2])] = revealed or f"{kind}: {code}"
    marked = {number: line.partition("  # ")[2] for number, line in enumerate(ASKED.splitlines(), 1) if "  # " in line}
    assert told == marked


def shown_python() -> dict[str, str]:
    """The Python files and the other Python blocks of all pages, by file name."""
    files = [each for page in PAGES for each in files_of(page).items()]
    shown = {name: code for name, code in files if name.endswith(".py") and not name.startswith(OF_THE_TREE)}
    for page in PAGES:
        if page not in CODE_BEFORE_THE_MOVE:
            blocks = enumerate(unnamed_python_of(page), start=1)
            shown |= {f"{Path(page).stem.lower()}_{number}.py": code for number, code in blocks}
    assert {"command_line_1.py", "haiku.py", "our_providers/atelier.py", "receiver.py"} <= shown.keys()
    return shown
