"""Many threads that use a type of the client for the first time at the same moment."""

import subprocess
import sys

RACE = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any
import msgspec
from windlass.typed_json import convert

sys.setswitchinterval(1e-6)
together = threading.Barrier(6)

def use(kind):
    together.wait(100)
    convert({"f1": {}}, kind)

with ThreadPoolExecutor(6) as threads:
    for number in range(150):
        fields = [(f"f{each}", dict[str, Any] | None, None) for each in range(20)]
        kind = msgspec.defstruct(f"Task{number}", fields)
        list(threads.map(use, [kind] * 6))
"""


def test_the_first_use_of_a_type_may_come_from_many_threads_at_once() -> None:
    ended = subprocess.run([sys.executable, "-c", RACE], capture_output=True, text=True, check=False, timeout=240)
    assert (ended.returncode, ended.stderr) == (0, "")
