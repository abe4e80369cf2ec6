"""Python imports this by itself in a process that finds it on its path: a worker gets its failpoints here."""

import os
import sys
import traceback
from pathlib import Path

WORKER = ["-m", "windlass.services.actors.main"]

if sys.orig_argv[1:3] == WORKER:
    from tests.support.failpoints.catalogue import CATALOGUE
    from tests.support.failpoints.injection import inject

    try:
        inject(CATALOGUE, Path(os.environ["FAILPOINTS_DIRECTORY"]))
    except Exception:  # noqa: BLE001 - Python would report it and start the worker without failpoints
        traceback.print_exc()
        sys.exit("the failpoints of tests/support/failpoints/catalogue.py cannot be injected")
