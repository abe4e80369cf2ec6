"""How an attempt learns that it should end, wherever it runs: in a worker, or in a test without one."""


class Stopped(BaseException):
    """The attempt was told to stop: a cancel, a shutdown or a lost lease.

    Not an `Exception`, so that an actor's own error handling does not swallow it.
    """
