"""Mutations that a storm would notice by luck alone: each is tried against the one test that is there to notice it."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.breaking.changes import Mutation, SourceChange, prepare
from windlass.shared.store import functions

PROJECT = Path(__file__).parents[3]
TEST_FAILED = 1
"""What pytest ends with; with anything else it has not come to try."""

THE_ENDS = """    RETURN QUERY
    SELECT e.claim_token, e.status, e.actor, e.provider, e.age_seconds, NULL::uuid, NULL::jsonb, NULL::jsonb, NULL::int,
           NULL::int, NULL::int, NULL::int, NULL::int, NULL::int, NULL::float, NULL::float, NULL::jsonb, NULL::int,
           NULL::boolean, NULL::boolean, NULL, NULL, NULL
    FROM end_tasks(endings, rules, locked.judged, asked) AS e;
"""
THE_CLAIM = """    RETURN QUERY
    SELECT c.claim_token, NULL, c.actor, c.provider, NULL::float, c.task_id, c.payload, c.checkpoint, c.attempt,
           c.retry_count, c.max_retries, c.interrupt_count, c.stall_count, c.rate_limited_count, c.timeout_seconds,
           c.waited_seconds, c.retry_delays, c.concerns, c.job_open, c.is_guarded, c.user_id, c.queue, c.word
    FROM claim_next(of_queues, places, tokens, aside, claimant, epoch, lease_seconds, locked.guarded) AS c;
"""

BY_TRANSACTION = """o.xid >= $1::text::xid8 AND ($3::text IS NULL OR o.feature = $3) ORDER BY o.xid LIMIT $2
        )
        SELECT due.feature, due.subject, (SELECT count(*) FROM found) AS rows,
               pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS line
"""
BY_HIGH_WATER_ID = """o.id > $1::text::bigint AND ($3::text IS NULL OR o.feature = $3) ORDER BY o.id LIMIT $2
        )
        SELECT due.feature, due.subject, (SELECT count(*) FROM found) AS rows,
               greatest($1::text::bigint, (SELECT max(id) FROM found)) AS line
"""

OUTBOX = "tests/integration/test_outbox.py"
WEBHOOKS = "tests/integration/test_webhook_outbox.py"
WORKFLOWS = "tests/integration/test_workflow_turns.py"
PIPELINE = "tests/acceptance/test_pipeline.py::test_with_somebody_at_every_place"


@dataclass(frozen=True)
class SmallMutation:
    """`test` is the one that has to fail."""

    name: str
    words: str
    change: SourceChange
    test: str


def in_sql(old: str, new: str) -> SourceChange:
    """In the functions as they are read: a set with another text has another name, and nobody else calls it."""
    read = "fill_in(path.read_text())"
    changed = f"fill_in(path.read_text().replace({old!r}, {new!r}))"
    found = sum(path.read_text().count(old) for path in functions.files())
    if found != 1:
        raise LookupError(f"the functions have {found} times {old!r}, and are to be changed there")
    return SourceChange("windlass.shared.store.functions", read, changed)


def small_mutations() -> tuple[SmallMutation, ...]:
    return (
        SmallMutation(
            "tokens-made-in-postgres",
            "a claim chooses its tokens itself, and an answer that is lost is never found again",
            in_sql("claim_token = tokens[c.place],", "claim_token = gen_random_uuid(),"),
            "tests/integration/test_claim_next.py::test_what_was_asked_for_and_not_answered_is_recalled",
        ),
        SmallMutation(
            "claim-before-judging",
            "what is next is claimed before the ends of the same call are judged",
            in_sql(THE_ENDS + THE_CLAIM, THE_CLAIM + THE_ENDS),
            "tests/integration/test_claim_next.py::test_a_429_of_the_same_call_starts_nothing",
        ),
        SmallMutation(
            "own-queue-first",
            "a slot is given to who asks, though a task of another queue has waited longer",
            in_sql(
                "considered := own || others_with_a_place(p.name, own, heard_within_seconds);", "considered := own;"
            ),
            "tests/integration/test_claim_next.py::test_a_slot_whose_turn_is_another_queue_s_is_left_to_it",
        ),
        SmallMutation(
            "own-queue-first-in-a-process",
            "a place asks for the queue again whose task has just ended in it",
            SourceChange(
                "windlass.services.actors.worker.starting.ring",
                "                self._numbers.move_to_end(queue)\n",
                "",
            ),
            "tests/integration/test_end_and_next.py::test_while_ten_thousand_wait_one_of_another_queue_starts_soon",
        ),
        SmallMutation(
            "places-of-any-kind",
            "a place on the loop is given to a task that needs a thread",
            SourceChange(
                "windlass.services.actors.worker.starting.starts",
                " if kind_of(queue) == kind else 0",
                "",
            ),
            "tests/unit/test_starts.py::test_each_kind_of_place_is_asked_for_by_a_call_of_its_own",
        ),
        SmallMutation(
            "siblings-step-on",
            "who was handed back because its loop was stuck goes on when that goes round again",
            SourceChange(
                "windlass.services.actors.worker.coroutines.gate",
                "        if self._is_closed:\n            self._wait_until_it_is_open(owner)\n",
                "",
            ),
            "tests/unit/test_coroutines.py::test_who_is_in_the_same_step_for_all_of_the_grace_is_the_culprit_and_nobody_"
            "steps_after_it",
        ),
        SmallMutation(
            "granted-to-a-stuck-loop",
            "who is granted to a loop that was given up waits for it with the culprit, and stalls with it",
            SourceChange(
                "windlass.services.actors.worker.coroutines.runner",
                "        self._is_given_up = True\n",
                "",
            ),
            f"{PIPELINE}[condemned for a stuck loop]",
        ),
        SmallMutation(
            "condemned-and-still-asking",
            "a process that has to go claims somebody for each that it hands back",
            SourceChange("windlass.services.actors.main", "            self.writer.ask_no_more()\n", ""),
            f"{PIPELINE}[condemned for a stuck loop]",
        ),
        SmallMutation(
            "unstarted-attempts-forgotten",
            "who was granted and not begun when its worker stops is not handed back",
            SourceChange(
                "windlass.services.actors.worker.executor",
                "            self._writer.after_the_last_answer(running.limiter.hand_back)\n",
                "            self._put_away(running)\n",
            ),
            f"{PIPELINE}[told to stop, before its calls]",
        ),
        SmallMutation(
            "handed-back-before-the-last-answer",
            "who is handed back by a worker that stops is given to it again by the call that it still waits for",
            SourceChange(
                "windlass.services.actors.worker.executor", "        if self.closed:\n", "        if False:\n"
            ),
            f"{PIPELINE}[told to stop, before its last answer]",
        ),
        SmallMutation(
            "wake-ups-forget-resumes",
            "a task that goes on waiting for an open job wakes nobody unless a slot is free",
            SourceChange(
                "windlass.shared.admission", "startable = resumes + min(due, free)", "startable = min(due, free)"
            ),
            "tests/unit/test_admission.py",
        ),
        SmallMutation(
            "answer-after-sigterm-ignored",
            "a worker that stops does not wait for what it has asked for",
            SourceChange(
                "windlass.services.actors.worker.starting.starts", "        await self._is_quiet.wait()\n", ""
            ),
            "tests/unit/test_starts.py::test_closed_it_asks_for_nothing_and_waits_for_the_last_answer",
        ),
        SmallMutation(
            "claim-forgets-the-limit",
            "a claim does not ask how many of a provider's slots are taken",
            in_sql("        slots := greatest(", "        slots := 1000000 + greatest("),
            "tests/integration/test_claim_next.py::test_the_limit_holds_however_many_ask_at_once",
        ),
        SmallMutation(
            "a-call-that-was-recalled-grants",
            "a call that comes when it was recalled already is given something",
            in_sql("w.claim_epoch > epoch", "w.claim_epoch > epoch + 1000000"),
            "tests/integration/test_claim_next.py::test_what_was_asked_for_and_not_answered_is_recalled",
        ),
        SmallMutation(
            "a-locked-row-holds-up-its-queue",
            "a claim does not look again when all that it chose was locked",
            in_sql("        aside := aside || missed;\n", "        EXIT WHEN missed IS NOT NULL;\n"),
            "tests/integration/test_unclaimable_tasks.py::test_one_whose_row_is_locked_for_long_is_passed_over",
        ),
        SmallMutation(
            "a-floor-that-stays",
            "under an open snapshot a probe never begins at the beginning again",
            in_sql("          AND (one.value ->> 'until')::timestamptz > moment\n", ""),
            "tests/integration/test_open_snapshot.py"
            "::test_who_moves_backwards_is_found_although_others_are_always_there",
        ),
        SmallMutation(
            "running-ones-forgotten",
            "who was claimed by a transaction that was under way is not counted among what runs",
            in_sql("since   xid8 := pg_snapshot_xmin(", "since   xid8 := pg_snapshot_xmax("),
            "tests/integration/test_open_snapshot.py::test_what_runs_is_counted_exactly_whatever_is_under_way",
        ),
        SmallMutation(
            "claim-ignores-the-group",
            "tasks start although their group is closed, or has as many failures as its limit",
            SourceChange(
                "windlass.shared.sql_fragments",
                "WHERE g.group_id = {task}.group_id AND (g.is_closed OR",
                "WHERE g.group_id = {task}.group_id AND false AND (g.is_closed OR",
            ),
            f"{WORKFLOWS}::test_nothing_starts_after_an_escalation_that_was_not_handled_yet",
        ),
        SmallMutation(
            "claim-without-a-second-look-at-the-group",
            "a claim does not look at the group of a task again after it has locked the task",
            in_sql("              AND (t.group_id IS NULL OR t.job_open OR NOT :is_stopped(t))\n", ""),
            "tests/integration/test_workflows.py::test_an_escalation_between_the_lock_and_the_claim_is_seen",
        ),
        SmallMutation(
            "failure-not-recorded",
            "a task of a group dies, and its failure is not recorded",
            in_sql("        PERFORM record_failures(moves);\n", "        NULL;\n"),
            f"{WORKFLOWS}::test_each_life_that_failed_is_one_failure",
        ),
        SmallMutation(
            "workflow-read-without-catching-up",
            "a GET of a workflow does not handle its pending rows first",
            SourceChange(
                "windlass.shared.features.workflows.operations",
                "    if row is None or not row.is_behind:\n        return row\n",
                "    if row is not None:\n        return row\n",
            ),
            f"{WORKFLOWS}::test_a_read_counts_what_has_ended_until_then",
        ),
        SmallMutation(
            "page-without-a-next-one",
            "a workflow holds a full page of its tasks, and no outbox row makes the orchestrator continue",
            in_sql("        PERFORM write_event('workflow', wanted, 'continue');\n", "        NULL;\n"),
            f"{WORKFLOWS}::test_an_escalation_holds_more_tasks_than_a_page_has",
        ),
        SmallMutation(
            "outbox-deleted-unhandled",
            "the rows of the outbox are deleted, and no feature has handled them",
            SourceChange(
                "windlass.shared.features.handling", "            await feature.handle(connection, moves)\n", ""
            ),
            f"{OUTBOX}::test_two_orchestrators_handle_each_row_once_and_in_order",
        ),
        SmallMutation(
            "outbox-handled-undeleted",
            "a feature handles the rows of the outbox, and they are not deleted",
            SourceChange(
                "windlass.shared.features.handling",
                "            await outbox.delete(connection, feature.name, locked, moves)\n",
                "",
            ),
            f"{OUTBOX}::test_two_orchestrators_handle_each_row_once_and_in_order",
        ),
        SmallMutation(
            "outbox-skips-by-high-water-id",
            "a look for new rows of the outbox skips all rows up to the highest id of earlier looks",
            SourceChange("windlass.shared.store.outbox", BY_TRANSACTION, BY_HIGH_WATER_ID),
            f"{OUTBOX}::test_a_row_of_a_transaction_that_began_long_ago_is_found_at_once",
        ),
        SmallMutation(
            "outbox-full-look-skips",
            "a full look at the outbox skips rows of earlier transactions, as the look for new rows does",
            SourceChange(
                "windlass.shared.store.outbox",
                "WHERE (o.feature, o.subject) > ($1, $2) AND",
                "WHERE o.xid >= pg_snapshot_xmin(pg_current_snapshot()) AND (o.feature, o.subject) > ($1, $2) AND",
            ),
            f"{OUTBOX}::test_a_full_look_finds_rows_that_looks_for_new_ones_skip",
        ),
        SmallMutation(
            "subscription-without-its-bit",
            "an endpoint is created, and the engine is not told to write moves for webhooks",
            SourceChange(
                "windlass.shared.features.webhooks.endpoints",
                "        if webhook.events:\n            await listen(session)\n",
                "",
            ),
            f"{WEBHOOKS}::test_while_an_endpoint_subscribes_each_move_writes_a_row",
        ),
        SmallMutation(
            "bit-unset-without-a-look",
            "the bit of webhooks is unset while an endpoint is being created",
            SourceChange(
                "windlass.shared.features.webhooks.listening",
                "        WHERE NOT EXISTS (SELECT 1 FROM webhooks WHERE listens)\n",
                "",
            ),
            f"{WEBHOOKS}::test_a_subscription_that_is_being_created_keeps_the_bit",
        ),
        SmallMutation(
            "held-delivery-without-a-lock",
            "a delivery is written as held without locking its endpoint, whose state changes meanwhile",
            SourceChange("windlass.shared.features.webhooks.queries", " ORDER BY webhook_id FOR SHARE", ""),
            "tests/integration/test_webhook_endpoints.py::test_a_change_waits_for_a_delivery_that_is_just_written",
        ),
        SmallMutation(
            "try-without-a-fence",
            "an attempt that has lost its task records its try",
            SourceChange(
                "windlass.shared.features.webhooks.carrying", "AND t.claim_token = $3", "AND $3::uuid IS NOT NULL"
            ),
            f"{WEBHOOKS}::test_an_attempt_that_has_lost_its_task_records_no_try",
        ),
        SmallMutation(
            "read-without-catching-up",
            "a GET of agent events does not handle pending rows first",
            SourceChange(
                "windlass.services.api.memory.events", "    await state.catch_up_on_memory.before_read()\n", ""
            ),
            "tests/acceptance/test_orchestrator.py"
            "::test_reads_are_up_to_date_while_no_orchestrator_runs_and_health_says_so",
        ),
        SmallMutation(
            "project-read-without-catching-up",
            "a GET of a project does not handle its pending rows first",
            SourceChange(
                "windlass.shared.features.projects.operations",
                "    if row is None or not row.is_behind:\n        return row\n",
                "    if row is not None:\n        return row\n",
            ),
            "tests/acceptance/test_orchestrator.py::test_projects_need_no_orchestrator_to_be_read_and_stopped",
        ),
        SmallMutation(
            "project-decides-without-catching-up",
            "a stop of a project does not close the run whose task has ended",
            SourceChange("windlass.shared.features.projects.turn", "        await turn.settle(handled)\n", ""),
            "tests/integration/test_project_walks.py::test_after_a_stop_has_answered_nothing_starts",
        ),
        SmallMutation(
            "late-choice-ignores-the-claim",
            "an edit of the backlog replaces a run's task though a worker has claimed it",
            SourceChange(
                "windlass.shared.features.projects.queries",
                "life = $2 AND attempt = $3 AND status IN ('blocked', 'queued', 'retrying') FROM",
                "life = $2 AND $3::int >= 0 FROM",
            ),
            "tests/integration/test_project_backlogs.py::test_what_a_worker_has_claimed_is_left_alone",
        ),
        SmallMutation(
            "revived-behind-its-owner",
            "the engine revives the task of a run, and no run is opened",
            in_sql("              AND t.concerns & :owners & ~for_owner = 0\n", ""),
            "tests/integration/test_projects.py::test_the_engine_returns_the_task_of_a_run_to_its_owner",
        ),
    )


def is_noticed(mutation: SmallMutation, directory: Path) -> bool:
    """Whether its test fails on the changed engine."""
    environment = prepare(Mutation(mutation.name, 0, mutation.words, mutation.change), directory)
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", mutation.test],
        cwd=PROJECT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode != TEST_FAILED:
        print(ended.stdout[-2000:], ended.stderr[-2000:], flush=True)
    return ended.returncode == TEST_FAILED
