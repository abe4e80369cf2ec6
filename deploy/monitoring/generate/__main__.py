"""`python -m deploy.monitoring.generate` writes every file; with `--check` it fails when one of them is stale."""

import sys

from deploy.monitoring.generate.output import MONITORING, files


def main() -> None:
    stale = {path: text for path, text in files().items() if not path.exists() or path.read_text() != text}
    if "--check" in sys.argv:
        if stale:
            names = ", ".join(str(path.relative_to(MONITORING.parents[1])) for path in stale)
            sys.exit(f"{names}: stale, run `make fmt`")
        return
    for path, text in stale.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main()
