"""How long a call waits for a lock: as long as the connection allows, or only briefly."""

BRIEFLY = "(SELECT set_config('lock_timeout', '50ms', true) AS wait OFFSET 0) AS patience CROSS JOIN LATERAL"
"""For a call that had rather come again than wait long for a lock; over with the statement. What is called has to be
given something of it (`WITH_PATIENCE`), or it might be called first."""


WITH_PATIENCE = "CASE WHEN patience.wait IS NOT NULL THEN {} END"


def patient(argument: str, *, briefly: bool) -> str:
    return WITH_PATIENCE.format(argument) if briefly else argument
