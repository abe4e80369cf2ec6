"""Prometheus and promtool, as `make test` puts them beside the virtual environment's programs."""

import shutil
import sys
from pathlib import Path

import pytest

FETCHED = Path(sys.prefix) / "prometheus" / "usr" / "bin"


def program(name: str) -> str:
    """Where it is; skips the test where there is none."""
    found = shutil.which(name, path=str(FETCHED)) or shutil.which(name)
    if found is None:
        pytest.skip(f"no {name} here: `make .venv/.prometheus` fetches one where apt-get can")
    return found
