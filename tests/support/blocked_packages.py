"""Python as it is where only the client's packages are installed."""

import subprocess
import sys
from collections.abc import Collection

OF_THE_SERVER = frozenset({
    "alembic", "asyncpg", "dramatiq", "httptools", "jsonschema_rs", "litestar", "obstore", "pika", "prometheus_client",
    "pydantic", "pydantic_core", "pydantic_settings", "rich", "sqlalchemy", "sqlmodel", "uvicorn", "uvloop",
})  # fmt: skip

BLOCKER = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Blocked())
"""


def run_without(packages: Collection[str], code: str) -> str:
    """What the code prints."""
    whole = BLOCKER.format(blocked=sorted(packages)) + code
    done = subprocess.run([sys.executable, "-c", whole], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
