"""Python imports this by itself in a process that finds it on its path: its functions are those of an older build."""

from pathlib import Path

from windlass.shared.store import functions

functions.FOLDER = Path(__file__).parent / "sql"
