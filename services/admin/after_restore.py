"""Puts right what rows say wrongly after a restore from a backup; `windlass after-restore` starts it."""

import argparse
import asyncio
import sys
from datetime import datetime
from uuid import UUID

import msgspec

from windlass.shared import db
from windlass.shared.db import Database
from windlass.shared.errors import words_of
from windlass.shared.features.projects import operations as projects
from windlass.shared.features.schedules import changing
from windlass.shared.features.workflows import operations as workflows
from windlass.shared.process import logs
from windlass.shared.scrubbing import scrub
from windlass.shared.settings import Settings
from windlass.shared.settings.loading import settings_or_exit
from windlass.shared.store.access import audit
from windlass.shared.store.flow_control.flow import Rules
from windlass.shared.store.operating import restoring

UNREACHABLE = 4
FAILED = 1
PATIENCE_SECONDS = 24 * 3600.0
"""Every live task is written to, in one transaction: however many there are."""

NOT_KNOWN = (
    "Keys that were revoked after the backup open again ({keys} are alive): see `windlass keys`, revoke them again.",
    "Idempotency and dedupe keys taken after the backup are free again: such a request, repeated, starts a new task.",
    "Tasks accepted after the backup are gone: whoever asks for one gets a 404.",
    "What ended, was cancelled or was revived after the backup is as it was before, and runs again if it was alive.",
    "Pauses, limits and breakers that operators set after the backup are as they were: see `windlass providers`.",
    "Files stored after the backup are in the media storage without a row: nobody will ask for them.",
)


class Order(msgspec.Struct):
    """Of these the provider is asked what became of them; they are not placed again."""

    provider: str
    task_id: UUID
    generation_id: UUID
    status: str
    job_id: str | None
    ordered_at: datetime


class Provider(msgspec.Struct):
    """Where to look for orders that were placed after the backup. For `unordered` tasks none is known here."""

    name: str
    actor: str
    open_orders: int
    unordered: int


class Report(msgspec.Struct, kw_only=True):
    is_rehearsal: bool
    refused_because: list[str] = []
    is_needed: bool = False
    backup_at: datetime | None = None
    looked_at: datetime | None = None
    running: int = 0
    waiting: int = 0
    workers: int = 0
    reports: int = 0
    renumbered_events: int = 0
    numbers_advanced: int = 0
    lost_runs: int = 0
    providers: list[Provider] = []
    open_orders: list[Order] = []
    not_known: list[str] = []


async def put_right(settings: Settings, *, rehearse: bool, force: bool) -> Report:
    """In one transaction: all of it, or nothing."""
    report = Report(is_rehearsal=rehearse)
    pool = await db.open_pool(settings, "after-restore", most=1, patience_seconds=PATIENCE_SECONDS)
    try:
        async with pool.acquire() as connection:
            transaction = connection.transaction()
            await transaction.start()
            await restoring.hold_still(connection)
            report.refused_because = [] if force else await reasons_to_refuse(connection, settings)
            if not report.refused_because:
                await rewrite(connection, settings, report)
            await (transaction.commit() if report.is_needed and not rehearse else transaction.rollback())
    finally:
        pool.terminate()
    return report


async def reasons_to_refuse(connection: Database, settings: Settings) -> list[str]:
    """Looked for under the lock: whoever comes later finds everything put right."""
    connected = [
        f"{each.name} is connected ({each.connections} connections): stop it"
        for each in await restoring.connected(connection)
    ]
    heard = [
        f"{each.name} was heard of {each.seconds_ago:.0f} s ago, by these rows: if that was before the backup,"
        f" wait until it is {settings.lease_seconds:g} s"
        for each in await restoring.heard_of(connection, within_seconds=settings.lease_seconds)
    ]
    return connected + heard


async def rewrite(connection: Database, settings: Settings, report: Report) -> None:
    report.backup_at = await restoring.newest_word(connection)
    done_before = await restoring.was_done_last(connection)
    report.renumbered_events = await restoring.renumber_transactions(connection)
    moved = await restoring.move_on(connection, all_of_them=report.renumbered_events > 0)
    await restoring.give_back(connection, moved, Rules.of(settings))
    report.running = sum(row.status == "running" for row in moved)
    report.waiting = len(moved) - report.running
    report.workers, report.reports = await restoring.forget_processes(connection)
    changes = (report.renumbered_events, len(moved), report.workers, report.reports)
    report.is_needed = any(changes) or not done_before
    await tell_what_to_check(connection, report)
    if report.is_needed:
        report.numbers_advanced = await restoring.advance_numbers(connection)
        report.lost_runs = await projects.restore(connection, step=restoring.SEQ_STEP)
        await workflows.restore(connection, step=restoring.SEQ_STEP)
        await changing.miss_all(connection, "restored", step=restoring.SEQ_STEP)
        await record(connection, report)


async def tell_what_to_check(connection: Database, report: Report) -> None:
    report.looked_at = await restoring.now(connection)
    report.providers = [Provider(**row) for row in await restoring.paid_providers(connection)]
    report.open_orders = [Order(**row) for row in await restoring.open_orders(connection)]
    keys = await restoring.live_keys(connection)
    report.not_known = [each.format(keys=keys) for each in NOT_KNOWN]


async def record(connection: Database, report: Report) -> None:
    """In the audit log. Streams over many tasks look up there where the history begins anew."""
    counts = {name: getattr(report, name) for name in ("running", "waiting", "workers", "reports")}
    details = {**counts, "backup_at": report.backup_at, "transaction": await restoring.transaction(connection)}
    action = restoring.ACTION
    await audit.record(connection, key_id=action, user_id=action, action=action, details=details)


def main() -> int:
    parser = argparse.ArgumentParser(prog="windlass after-restore", description=__doc__)
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--force", action="store_true")
    wanted = parser.parse_args()
    settings = settings_or_exit("database_url")
    logs.start(settings, "after-restore")
    try:
        report = asyncio.run(put_right(settings, rehearse=wanted.dry_run, force=wanted.force))
    except db.CONTENDED as error:
        return _complain(f"somebody else is writing to the tasks ({error}): stop all services first", FAILED)
    except db.UNAVAILABLE as error:
        return _complain(f"Postgres cannot be reached: {words_of(error)}", UNREACHABLE)
    except db.NOT_MIGRATED:
        return _complain("the tables are not those of this version: run `windlass migrate` first", FAILED)
    sys.stdout.buffer.write(msgspec.json.encode(report))
    return FAILED if report.refused_because else 0


def _complain(words: str, code: int) -> int:
    print(scrub(f"windlass: {words}"), file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
