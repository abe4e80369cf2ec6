"""`windlass actors register`, in a process of its own: what runs here imports nobody's code."""

import json
import re
import sys
from collections.abc import Mapping

from windlass.services.laptop.supervision.children import Children
from windlass.services.laptop.supervision.unit import ending

MISTAKE = re.compile(r"[\d:]{8} ERROR +register: (.+)")


async def register(children: Children, environment: Mapping[str, str]) -> set[str]:
    """What is wrong with the actors, a sentence each; those that are well are registered."""
    command = [sys.executable, "-m", "windlass.services.admin.register"]
    finished = await children.run(command, environment=environment)
    if finished.code == 0:
        return set()
    lines = finished.output.splitlines()
    mistakes = {said for line in lines if (said := mistake_in(line)) is not None}
    last = lines[-1] if lines else "it said nothing"
    return mistakes or {f"they could not be registered ({ending(finished.code)}): {last}"}


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
