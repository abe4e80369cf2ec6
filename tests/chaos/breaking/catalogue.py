"""The mutations of the engine that the judge of storms has to notice: which exact piece of its text is changed, and
which promise that breaks."""

from tests.chaos.breaking.changes import FunctionChange, Mutation, SourceChange
from tests.chaos.judge.violation import (
    ARRIVED_WRONGLY,
    COMPLETED_WRONGLY,
    DECIDED_TWICE,
    EXPANDED_WRONGLY,
    LEFT_ALIVE,
    NO_ROW,
    NOT_DELIVERED,
    NOT_REMEMBERED,
    NOT_WHAT_TASKS_SAY,
    ORDERED_TWICE,
    OVER_THE_LIMIT,
    OWNERLESS,
    RUN_AFTER_A_STOP,
    RUN_AFTER_COMPLETION,
    STARTED_WRONGLY,
    STEP_RUN_AGAIN,
    STREAM_BROKEN,
    TWO_OPEN_RUNS,
    UNFINISHED,
    UNTRUE,
)

MUTATIONS = (
    Mutation(
        "no-fence",
        COMPLETED_WRONGLY,
        "an end is written by whoever brings it, not only by who holds the lease",
        FunctionChange("end_tasks", " AND t.attempt = e.attempt AND t.claim_token = e.claim_token", ""),
    ),
    Mutation(
        "slot-freed-before-the-kill",
        OVER_THE_LIMIT,
        "a frozen worker is killed a lease after its slots were given away, not before",
        SourceChange(
            "windlass.services.actors.worker.leases.lease_watch",
            "self._spare = settings.stop_grace_seconds + settings.lease_margin_seconds",
            "self._spare = -settings.lease_seconds",
        ),
    ),
    Mutation(
        "nobody-asks",
        UNFINISHED,
        "a worker hears its doorbells, and does not ask for what they stand for",
        SourceChange(
            "windlass.services.actors.worker.starting.starts",
            "            await self._wake.wait()\n",
            "            await asyncio.sleep(1e6)\n",
        ),
    ),
    Mutation(
        "no-limit",
        OVER_THE_LIMIT,
        "a claim does not ask how many of a provider's slots are taken",
        FunctionChange("next_tasks", "        slots := greatest(", "        slots := 1000000 + greatest("),
    ),
    Mutation(
        "order-repeated-after-a-kill",
        ORDERED_TWICE,
        "an attempt does not look for what an earlier one has ordered",
        SourceChange("windlass.services.actors.media.orders", "before = await self._latest()", "before = None"),
    ),
    Mutation(
        "stream-skips-a-seq",
        STREAM_BROKEN,
        "a client that comes back goes on one event too late",
        SourceChange(
            "windlass.services.api.streams.one_task",
            "    return int(last_seen)\n",
            "    return min(int(last_seen) + 1, last_seq)\n",
        ),
    ),
    Mutation(
        "no-lock-at-start",
        TWO_OPEN_RUNS,
        "two may start a project at the same time, and no index stands behind it",
        SourceChange(
            "windlass.shared.features.projects.turn",
            "        await outbox.lock(db, FEATURE, [project_id])\n",
            "",
            also=FunctionChange(
                "lock_project",
                "WHERE p.project_id = wanted FOR NO KEY UPDATE;",
                "WHERE p.project_id = wanted;",
                beforehand="DROP INDEX project_runs_open",
            ),
        ),
    ),
    Mutation(
        "next-run-ignores-the-stop",
        RUN_AFTER_A_STOP,
        "a loop goes on whether it was asked to stop or not",
        SourceChange(
            "windlass.shared.features.projects.rules",
            "if state == QueueState.STOPPING or end == RunState.CANCELLED:",
            "if end == RunState.CANCELLED:",
            also=SourceChange(
                "windlass.shared.features.projects.turn",
                "        assert self.queue.state in QUEUE[change].sources",
                "        assert self.queue.state in QUEUE[change].sources or change == 'advance'",
            ),
        ),
    ),
    Mutation(
        "list-expanded-twice",
        EXPANDED_WRONGLY,
        "two turns of a workflow run at the same time, and no unique index refuses the second expansion",
        SourceChange(
            "windlass.shared.features.workflows.turn",
            "        await outbox.lock(db, FEATURE, [workflow_id])\n",
            "",
            also=FunctionChange(
                "lock_workflow",
                "WHERE w.workflow_id = wanted FOR NO KEY UPDATE;",
                "WHERE w.workflow_id = wanted;",
                beforehand="DROP INDEX tasks_workflow_key",
            ),
        ),
    ),
    Mutation(
        "workflow-rows-deleted-without-a-turn",
        NOT_WHAT_TASKS_SAY,
        "the outbox rows of a workflow are deleted, and its tasks are not counted again",
        SourceChange("windlass.shared.features.workflows.subscriber", "            await turn.settle()\n", ""),
    ),
    Mutation(
        "delivery-not-written",
        NOT_DELIVERED,
        "a task ends, and its move is handled without writing a delivery",
        SourceChange("windlass.shared.features.webhooks.fan_out", "    await writing.write(db, addressed)\n", ""),
    ),
    Mutation(
        "due-time-fired-twice",
        STARTED_WRONGLY,
        "a due time that has its row is started once more when it comes again",
        SourceChange(
            "windlass.shared.features.schedules.rules",
            "    return cause != Cause.BACKFILL or is_summary or outcome not in MAY_BE_BACKFILLED\n",
            "    return False\n",
        ),
    ),
    Mutation(
        "end-not-remembered",
        NOT_REMEMBERED,
        "an agent's task completes, and its move is handled without writing an event",
        SourceChange(
            "windlass.shared.features.memory.rules",
            'ENDS = ("completed", "dead", "cancelled")',
            'ENDS = ("dead", "cancelled")',
        ),
    ),
    Mutation(
        "dead-workers-keep-theirs",
        OWNERLESS,
        "nobody takes back what a worker had that is dead",
        FunctionChange(
            "stall_tasks",
            "IF moment > heard_at + make_interval(secs => patience_seconds) THEN RETURN; END IF;",
            "RETURN;",
        ),
    ),
    Mutation(
        "end-without-a-look-at-what-is-left",
        LEFT_ALIVE,
        "an agent's attempt ends whether what it has started lives or not",
        SourceChange(
            "windlass.services.actors.subprocess.ladder",
            "        self._kill()\n        if not run.none_left:\n            self._end_strays()\n",
            "",
        ),
    ),
    Mutation(
        "project-forgets-its-start",
        UNTRUE,
        "a project starts, and its history does not have it",
        FunctionChange(
            "write_project",
            "WITH ORDINALITY AS e(event, place);",
            "WITH ORDINALITY AS e(event, place) WHERE e.event ->> 'type' <> 'start';",
        ),
    ),
    Mutation(
        "completed-ones-live-again",
        RUN_AFTER_COMPLETION,
        "who asks for one more life of what has completed gets it",
        FunctionChange(
            "revive_tasks",
            "WHERE t.status IN ('dead', 'cancelled') AND",
            "WHERE t.status IN ('dead', 'cancelled', 'completed') AND",
            beforehand="ALTER TABLE tasks DROP CONSTRAINT tasks_sound_check",
        ),
    ),
    Mutation(
        "second-decision-heard",
        DECIDED_TWICE,
        "who decides second is heard as the first was",
        FunctionChange(
            "decide_task",
            """CASE WHEN t.approval ->> 'decision' IS NOT NULL THEN 'already-decided'
                WHEN t.status <> 'blocked' OR t.asked_at IS NULL THEN 'not-waiting-for-approval' END""",
            "NULL",
        ),
    ),
    Mutation(
        "signed-otherwise",
        ARRIVED_WRONGLY,
        "what is signed is not quite what is sent",
        SourceChange(
            "windlass.services.actors.webhook.sending", "sign(name, now, body)", 'sign(name, now, body + " ")'
        ),
    ),
    Mutation(
        "skipped-time-without-a-row",
        NO_ROW,
        "a due time at which the one before still ran leaves no trace",
        SourceChange(
            "windlass.shared.features.schedules.turn",
            "        else:\n            await runs.write_run(",
            "        elif verdict.outcome != Outcome.SKIPPED:\n            await runs.write_run(",
        ),
    ),
    Mutation(
        "steps-forgotten",
        STEP_RUN_AGAIN,
        "a later attempt is not given what an earlier one has finished",
        SourceChange(
            "windlass.shared.store.tasks.steps",
            "    return {row.name: row.result for row in rows}\n",
            "    return {}\n",
        ),
    ),
)
