"""Whether the committed page was built from the sources beside it: a hash over them, which needs no Node."""

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
BUILT_FROM: Final = ROOT / "services" / "api" / "page" / "BUILT_FROM"
SOURCES: Final = (
    "clients/typescript/src/**/*.ts",
    "clients/typescript/schema.d.ts",
    "web/src/**/*",
    "web/index.html",
    "web/package.json",
    "web/package-lock.json",
    "web/*.config.*",
    "web/tsconfig.json",
)


def sources() -> Iterator[Path]:
    found = {path for pattern in SOURCES for path in ROOT.glob(pattern) if path.is_file()}
    return iter(sorted(found, key=lambda path: path.relative_to(ROOT).as_posix()))


def fingerprint() -> str:
    """Over names and contents, each with its length, so that nothing can slide from one file into the next."""
    whole = hashlib.sha256()
    for path in sources():
        for part in (path.relative_to(ROOT).as_posix().encode(), path.read_bytes()):
            whole.update(b"%d:" % len(part))
            whole.update(part)
    return whole.hexdigest()


def main(arguments: list[str]) -> int:
    if arguments == ["--print"]:
        print(fingerprint())
        return 0
    if arguments == ["--write"]:
        BUILT_FROM.write_text(fingerprint() + "\n")
        return 0
    if BUILT_FROM.is_file() and BUILT_FROM.read_text().strip() == fingerprint():
        return 0
    print("web/freshness.py: the page was built from other sources than these: run `make web`", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
