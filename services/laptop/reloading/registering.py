"""Checks and registers actors in a process of its own, because the supervisor never imports foreign code."""

import json
import re
import sys
from collections.abc import Callable, Mapping

from windlass.services.laptop.supervision.children import Children, Finished
from windlass.services.laptop.supervision.unit import ending

MISTAKE = re.compile(r"[\d:]{8} ERROR +register: (.+)")


OURS = "windlass: "


async def check(children: Children, environment: Mapping[str, str]) -> set[str]:
    """Returns what is wrong with the modules of `WINDLASS_ACTORS`, one sentence for each mistake."""
    command = [sys.executable, "-m", "windlass.services.admin.check_actors", "--modules"]
    return _mistakes(await children.run(command, environment=environment), _checked)


async def register(children: Children, environment: Mapping[str, str]) -> set[str]:
    """Registers the actors that have no mistakes, and returns one sentence for each mistake."""
    command = [sys.executable, "-m", "windlass.services.admin.register"]
    return _mistakes(await children.run(command, environment=environment), mistake_in)


def _mistakes(finished: Finished, mistake: Callable[[str], str | None]) -> set[str]:
    if finished.code == 0:
        return set()
    lines = finished.output.splitlines()
    found = {said for line in lines if (said := mistake(line)) is not None}
    last = lines[-1] if lines else "no output"
    return found or {f"the actors could not be loaded ({ending(finished.code)}): {last}"}


def _checked(line: str) -> str | None:
    return line.removeprefix(OURS).removeprefix("WINDLASS_ACTORS: ") if line.startswith(OURS) else None


def mistake_in(line: str) -> str | None:
    """What is wrong with an actor, if the line says that, for people or as JSON. Foreign code prints what it likes as
    it is imported."""
    if told := MISTAKE.fullmatch(line):
        return told[1]
    try:
        said = json.loads(line)
    except ValueError:
        return None
    is_one = isinstance(said, dict) and (said.get("logger"), said.get("level")) == ("register", "error")
    return str(said["message"]) if is_one else None
