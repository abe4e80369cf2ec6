"""What the command line's exit codes mean; scripts rely on them."""

from http import HTTPStatus
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
from windlass.services.cli.connection import WrongSetting
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
  0    success
  1    the task, workflow or check failed, or the API refused the request
  2    the command line or a setting is wrong, or an abbreviated id or a name is ambiguous
  3    the object does not exist
  4    the API cannot be reached or is not available
  5    the key is not valid, or its role does not permit this
  6    the wait timed out; the task continues
  130  interrupted with Ctrl-C; tasks continue
  141  the program that read the output closed the pipe
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
    (WrongSetting, USAGE),
    (NotConfigured, UNREACHABLE),
    (NoSuchObject, NOT_FOUND),
    (Ambiguous, USAGE),
)


def exit_code(error: WindlassError) -> int:
    if getattr(error, "status", None) == HTTPStatus.NOT_FOUND:
        return NOT_FOUND
    return next((code for kind, code in OF_ERRORS if isinstance(error, kind)), FAILED)
