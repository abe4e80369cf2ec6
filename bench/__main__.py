"""Measures everything, or the parts that are named, and writes the report: `python -m bench [--show] [PART…]`."""

import argparse
import importlib
import os
import time
import traceback
from datetime import UTC, datetime
from typing import Any

from bench import plots, report, tables
from bench.figures import Figure, show
from bench.parts import PARTS
from bench.surroundings import commit, surroundings
from tests.support.servers.private_servers import throw_away_servers

CALM_LOAD, CALM_SECONDS = 1.0, 120


def main() -> None:
    asked = _arguments()
    if asked.draw:
        _write(report.load())
        return
    with throw_away_servers() as servers:
        around = surroundings(servers)
    failed = []
    for number, name in enumerate(asked.parts, 1):
        print(f"\n{PARTS[name]} ({name}, {number} of {len(asked.parts)})", flush=True)
        load = _calm_load()
        began = time.monotonic()
        try:
            found, versions = _measure(name)
        except Exception:  # noqa: BLE001 - the other parts are still worth their while; the exit code tells
            traceback.print_exc()
            failed.append(name)
            continue
        show(found)
        print(f"{time.monotonic() - began:.0f} s", flush=True)
        if asked.show:
            print(f"load {load:.1f} when it began", flush=True)
            continue
        kept = {**around, "versions": {**around["versions"], **versions}}
        part = report.a_part(found, date=asked.date, commit=asked.commit, surroundings=kept, load=load)
        _write(report.with_part(report.load(), name, part, list(PARTS)))
    if failed:
        raise SystemExit(f"not measured: {', '.join(failed)}")


def _calm_load() -> float:
    """What the part before has left in the load is over in a minute or two; what is left then is somebody else's."""
    until = time.monotonic() + CALM_SECONDS
    while (load := os.getloadavg()[0]) > CALM_LOAD and time.monotonic() < until:
        time.sleep(1)
    return load


def _write(whole: report.Report) -> None:
    report.keep(whole)
    kept = report.load()  # rounded: whoever draws them anew has these numbers
    tables.keep(kept)
    plots.keep(kept)
    print(f"written to {report.PLACE.relative_to(report.PLACE.parents[1])}", flush=True)


def _measure(name: str) -> tuple[list[Figure], dict[str, str]]:
    module: Any = importlib.import_module(f"bench.{name}")
    versions = module.versions() if hasattr(module, "versions") else {}
    return module.figures(), dict(versions)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"which to measure, all by default: {' '.join(PARTS)}")
    parser.add_argument("--date", default=datetime.now(UTC).date().isoformat(), help="the day that the report names")
    parser.add_argument("--commit", default=commit(), help="the commit that the report names")
    parser.add_argument("--draw", action="store_true", help="measure nothing, draw tables and plots from the numbers")
    parser.add_argument("--show", action="store_true", help="write nothing: for sizes that are not the real ones")
    asked = parser.parse_args()
    asked.parts = asked.parts or list(PARTS)
    if unknown := [name for name in asked.parts if name not in PARTS]:
        parser.error(f"unknown: {', '.join(unknown)}; there are {' '.join(PARTS)}")
    return asked


if __name__ == "__main__":
    main()
