"""The page about the order of locks, as `shared/store/locks.py` has it."""

from pathlib import Path

from windlass.shared.store.locks import LOCK_ORDER, Lock

LOCKS = Path(__file__).parent / "lock_order.md"


def locks() -> str:
    return "\n".join(
        [
            "# The order of locks, as the code has it",
            "",
            "Drawn from `shared/store/locks.py` by `make fmt`; `make check` fails when this page is stale.",
            "[Decision 0041](decisions/0041-lock-order.md) says why.",
            "",
            "A transaction that has locked something waits only for locks further down, and within a line only for",
            "keys that sort later. A lock that is needed out of order is taken only if it is free (`SKIP LOCKED`);",
            "otherwise the work is left to a transaction that has locked nothing yet.",
            "",
            "| | what | in which order | by |",
            "|---|---|---|---|",
            *(_row(number, lock) for number, lock in enumerate(LOCK_ORDER, start=1)),
            "",
        ]
    )


def _row(number: int, lock: Lock) -> str:
    what = lock.what if lock.table is None else f"{lock.what} (`{lock.table}`)"
    return f"| {number} | {what} | {lock.order} | {lock.who} |"
