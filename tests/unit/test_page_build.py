"""The page's build, as it is committed: small enough to be loaded on a train, and nothing in it from elsewhere."""

import gzip
import re
from pathlib import Path
from typing import Final

from windlass.services.api.http.page import BUILD, INDEX

FIRST_LOAD_BYTES: Final = 80_000
WHOLE_BYTES: Final = 220_000
SERVED: Final = {".css", ".html", ".js", ".svg"}
WORKER: Final = "live.js"
"""What every tab shares; it is loaded with the first of them."""

NAMED_IN_INDEX: Final = re.compile(r'(?:src|href)="/page/([^"]+)"')
IMPORTED: Final = re.compile(r'(?:from|import)\s*"\./([^"]+)"')
ELSEWHERE: Final = re.compile(r"(?:https?:)?//(?!www\.w3\.org/)[a-z0-9-]+\.[a-z0-9.-]+")


def test_first_load_is_small() -> None:
    assert 0 < compressed(loaded_at_first()) <= FIRST_LOAD_BYTES


def test_whole_page_is_small() -> None:
    assert 0 < compressed(set(built())) <= WHOLE_BYTES


def test_views_of_operators_are_loaded_when_somebody_goes_there() -> None:
    first = loaded_at_first()
    assert {"app.js", "app.css", WORKER} <= first
    assert not {"Studio.js", "Providers.js", "Keys.js"} & first
    assert {"Studio.js", "Providers.js", "Keys.js"} <= set(built())


def test_nothing_is_asked_of_other_hosts() -> None:
    """Nor is anything inline, which the page's own policy would refuse."""
    index = built()[INDEX].read_text()
    assert re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=", index) is None
    for name, path in built().items():
        if path.suffix in {".css", ".html"}:
            assert ELSEWHERE.search(path.read_text()) is None, name


def loaded_at_first() -> set[str]:
    """What the document names, and whatever that cannot do without."""
    names = {INDEX, WORKER}
    names.update(NAMED_IN_INDEX.findall(built()[INDEX].read_text()))
    while more := {each for name in names if name.endswith(".js") for each in imports(name)} - names:
        names |= more
    return names


def imports(name: str) -> list[str]:
    return IMPORTED.findall(built()[name].read_text())


def compressed(names: set[str]) -> int:
    return sum(len(gzip.compress(built()[name].read_bytes(), mtime=0)) for name in names)


def built() -> dict[str, Path]:
    return {path.name: path for path in BUILD.iterdir() if path.suffix in SERVED}
