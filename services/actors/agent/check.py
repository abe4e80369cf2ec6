"""`python -m …agent.check`: whether agents could be put into a sandbox here, for whoever asks before any runs."""

import sys
import tempfile
from pathlib import Path

from windlass.services.actors.agent import sandbox
from windlass.shared.process.accounts import account_for_agents
from windlass.shared.settings.loading import settings_or_exit


def main() -> int:
    """0 when it works; else why not, on stdout, and 1."""
    try:
        account = account_for_agents()
    except LookupError as error:
        print(error)
        return 1
    found = sandbox.find(settings_or_exit().data_dir.absolute(), account)
    if found is None:
        print("bubblewrap is not installed")
        return 1
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "tmp").mkdir()
        problem = found.check(Path(directory))
    if problem is not None:
        print(f"bubblewrap does not work here ({problem})")
    return 0 if problem is None else 1


if __name__ == "__main__":
    sys.exit(main())
