"""What the command line's exit codes mean; scripts rely on them."""

from typing import Final

from windlass.client.errors import (
    Forbidden,
    NotConfigured,
    NotFound,
    Unauthorized,
    Unavailable,
    Unreachable,
    UnreadableAnswer,
    WaitTimeout,
    WindlassError,
    WorkflowTimeout,
)
from windlass.services.cli.references import Ambiguous, NoSuchObject

DONE: Final = 0
FAILED: Final = 1
USAGE: Final = 2
NOT_FOUND: Final = 3
UNREACHABLE: Final = 4
NOT_ALLOWED: Final = 5
WAIT_RAN_OUT: Final = 6
INTERRUPTED: Final = 130
PIPE_CLOSED: Final = 141

MEANINGS: Final = """\
exit codes:
  0    done
  1    the task died or was cancelled, or the request was refused
  2    the command was not understood
  3    there is no such thing
  4    the API cannot be reached, or cannot serve at the moment
  5    the key is not valid, or may not do this
  6    the wait ran out; the task goes on
  130  interrupted with Ctrl-C; tasks go on
"""

OF_ERRORS: Final[tuple[tuple[type[WindlassError], int], ...]] = (
    (WaitTimeout, WAIT_RAN_OUT),
    (WorkflowTimeout, WAIT_RAN_OUT),
    (Unauthorized, NOT_ALLOWED),
    (Forbidden, NOT_ALLOWED),
    (NotFound, NOT_FOUND),
    (Unavailable, UNREACHABLE),
    (Unreachable, UNREACHABLE),
    (UnreadableAnswer, UNREACHABLE),
    (NotConfigured, UNREACHABLE),
    (NoSuchObject, NOT_FOUND),
    (Ambiguous, USAGE),
)


def exit_code(error: WindlassError) -> int:
    return next((code for kind, code in OF_ERRORS if isinstance(error, kind)), FAILED)
