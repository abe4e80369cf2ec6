"""The client that `send` uses: one for each process, made when something is sent for the first time."""

import atexit
import os
import threading

from windlass.client.sync_client import Client

_making = threading.Lock()
_made: dict[int, Client] = {}
"""By process: connections cannot be shared with a parent that has forked."""


def default_client() -> Client:
    """For any thread."""
    process = os.getpid()
    if process not in _made:
        with _making:
            if process not in _made:
                _made[process] = Client()
                atexit.register(_made[process].close)
    return _made[process]
