"""What a turn did, for the log and for the metrics. Reported by the process that committed it."""

import logging
from collections.abc import Sequence

from windlass.shared.features.workflows.queries import Workflow
from windlass.shared.features.workflows.rules import Node
from windlass.shared.metrics import counting
from windlass.shared.metrics.counting import Counts

log = logging.getLogger("workflows")


class Report:
    def __init__(self, row: Workflow) -> None:
        self._row = row
        self._changes: list[tuple[str, str]] = []
        self._submitted: list[Node] = []
        self._revived: list[Counts] = []
        self._ended: list[Counts] = []

    def changed(self, change: str, status: str) -> None:
        self._changes.append((change, status))

    def submitted(self, node: Node, tasks: int) -> None:
        self._submitted += [node] * tasks

    def revived(self, counts: Sequence[Counts]) -> None:
        self._revived += counts

    def ended(self, counts: Sequence[Counts]) -> None:
        self._ended += counts

    def write(self) -> None:
        """Once the transaction is committed."""
        counting.submitted(self._submitted)
        counting.revived(self._revived)
        counting.ended(self._ended)
        for change, status in self._changes:
            write_change(self._row.workflow_id, change, name=self._row.name, user_id=self._row.user_id, status=status)


def write_change(workflow_id: object, change: str, *, name: str, user_id: str, status: str) -> None:
    log.info("workflow_%s workflow=%s name=%r user=%s status=%s", change, workflow_id, name, user_id, status)
