"""`windlass get | list | events | why | cancel | retry`: tasks, their stories and what can be done with them."""

import argparse
from collections.abc import Callable
from typing import Any

from windlass import Approval, AttemptUsage, Event, Task, Why, WindlassError
from windlass.client import calls
from windlass.client.call import Call
from windlass.client.task import Listing
from windlass.services.cli import exit_codes
from windlass.services.cli.commands.arguments import Commands, add_filters, chosen_filter, count, seconds
from windlass.services.cli.display.tables import Facts, Table
from windlass.services.cli.display.texts import age, clean, compact, describe, dollars, known, moment, spent, standing
from windlass.services.cli.references import AN_ID, TASK
from windlass.services.cli.session import Session, complain


def add_commands(commands: Commands) -> None:
    parser = commands.add("get", get, "show one task", f"windlass get {AN_ID} --wait-timeout 60")
    parser.add_argument("task_id", type=TASK.read, metavar="TASK")
    parser.add_argument("--wait", action="store_true", help="until it has ended; exit code 1 if not completed")
    parser.add_argument("--wait-timeout", type=seconds, metavar="SECONDS", help="the same, for no longer than this")

    parser = commands.add(
        "list", list_tasks, "list tasks, newest first", "windlass list --status dead --tag nightly --limit 50"
    )
    parser.add_argument("--limit", type=count, default=20, metavar="N", help="at most so many (20)")
    parser.add_argument("--full", action="store_true", help="with payload, result and all errors (for -o json)")
    add_filters(parser)

    parser = commands.add("events", events, "show a task's history", f"windlass events {AN_ID} --type claim")
    parser.add_argument("task_id", type=TASK.read, metavar="TASK")
    parser.add_argument("--after", type=int, default=0, metavar="SEQ", help="only what came after this number")
    parser.add_argument("--type", dest="types", action="append", default=[], help="may be repeated; such as claim")

    parser = commands.add("why", why, "say why a task is not running", f"windlass why {AN_ID}")
    parser.add_argument("task_id", type=TASK.read, metavar="TASK")

    for name, command, duty in (
        ("cancel", cancel, "cancel tasks; a running one stops its work first"),
        ("retry", retry, "give dead or cancelled tasks a new life"),
    ):
        parser = commands.add(name, command, duty, f"windlass {name} {AN_ID}")
        parser.add_argument("task_ids", type=TASK.read, nargs="+", metavar="TASK")


def get(session: Session, arguments: argparse.Namespace) -> int | None:
    if arguments.wait or arguments.wait_timeout is not None:
        return show_ended(session, arguments.task_id, arguments.wait_timeout)
    session.show(calls.get(arguments.task_id), task_facts)
    return None


def show_ended(session: Session, task_id: str, timeout: float | None) -> int:
    """Waits for the end and shows it."""
    session.waiting_client().wait(task_id, timeout=timeout)
    task = session.show(calls.get(task_id), task_facts)
    return exit_codes.DONE if task.status == "completed" else exit_codes.FAILED


def list_tasks(session: Session, arguments: argparse.Namespace) -> None:
    chosen = chosen_filter(arguments)
    empty = "no task is like that" if chosen else "no task was ever submitted"
    show_tasks(session, calls.list_tasks(chosen, full=arguments.full), arguments.limit, empty)


def show_tasks(session: Session, call: Call[Listing[Task]], most: int, empty: str) -> None:
    document = session.ask_pages(call, most)
    tasks = call.read(document).items
    note = f"these are the newest {len(tasks)}; --limit shows more" if document.get("next_cursor") else None
    session.screen.show(document, tasks_table(tasks, empty, note))


def events(session: Session, arguments: argparse.Namespace) -> None:
    call = calls.events(arguments.task_id, arguments.after, arguments.types)
    document = session.ask_pages(call)
    session.screen.show(document, events_table(call.read(document).items))


def why(session: Session, arguments: argparse.Namespace) -> None:
    session.show(calls.why(arguments.task_id), why_facts)


def cancel(session: Session, arguments: argparse.Namespace) -> int:
    return each(session, arguments.task_ids, calls.cancel)


def retry(session: Session, arguments: argparse.Namespace) -> int:
    return each(session, arguments.task_ids, calls.retry)


def each(session: Session, task_ids: list[str], call: Callable[[str], Call[Task]]) -> int:
    """One after the other; what fails does not keep the rest from being done. The first failure's code is told."""
    documents: list[Any] = []
    errors: list[dict[str, str]] = []
    codes: list[int] = []
    for each_id in task_ids:
        try:
            documents.append(session.client.ask(call(each_id)))
        except WindlassError as error:
            complain(error, about=each_id)
            errors.append({"task_id": each_id, "code": getattr(error, "code", "unreachable"), "detail": str(error)})
            codes.append(exit_codes.exit_code(error))
    tasks = [call(task_ids[0]).read(document) for document in documents]
    if session.screen.as_json:
        session.screen.document({"items": documents, **({"errors": errors} if errors else {})})
    else:
        for task in tasks:
            session.screen.line(f"{task.task_id}\t{'stopping' if stops(task) else task.status}")
    return codes[0] if codes else exit_codes.DONE


def stops(task: Task) -> bool:
    return task.cancel_requested and not task.has_ended


def tasks_table(tasks: tuple[Task, ...], empty: str, note: str | None = None) -> Table:
    return Table(
        columns=("TASK", "STATUS", "QUEUE", "ATTEMPT", "AGE", "COST", "PROGRESS"),
        rows=[
            (
                task.task_id,
                task.status,
                task.queue,
                str(task.attempt),
                age(task.created_at),
                "" if task.usage is None else dollars(task.usage.cost_usd),
                standing(task),
            )
            for task in tasks
        ],
        empty=empty,
        wide=frozenset({"PROGRESS"}),
        note=note,
        least=("COST", "ATTEMPT", "AGE", "QUEUE"),
    )


def task_facts(task: Task) -> Facts:
    """What is worth knowing first, then the rest."""
    error = f"{describe(task.error)} ({task.error.kind}, attempt {task.error.attempt})" if task.error else ""
    heading = [
        ("task", task.task_id),
        ("status", task.status),
        ("progress", standing(task)),
        ("error", error),
        ("result", compact(task.result) if task.result is not None else ""),
        ("payload", compact(task.payload)),
        ("input", compact(task.input) if task.input is not None else ""),
        ("approval", "" if task.approval is None else asked(task.approval)),
        ("attempt", f"{task.attempt}, {task.retry_count} of {task.max_retries} retries used"),
        ("usage", "" if task.usage is None else spent(task.usage)),
        *(("usage", f"attempt {each.attempt}: {spent(each)}") for each in by_attempt(task)),
    ]
    names = (
        "actor", "provider", "queue", "lane", "task_type", "priority", "user_id", "tags", "project_id", "workflow_id",
        "workflow_key", "workflow_run_id", "interaction_id", "parent_task_id", "depends_on", "dedupe_key", "worker_id",
        "provider_job_id", "exit_code", "held", "concurrency_key", "timeout_seconds", "created_at", "available_at",
        "started_at", "completed_at", "updated_at", "expires_at", "heartbeat_at", "lease_expires_at",
    )  # fmt: skip
    return Facts([*heading, *((name, known(getattr(task, name))) for name in names)])


def by_attempt(task: Task) -> tuple[AttemptUsage, ...]:
    """Worth saying where it is not all one attempt's."""
    told = task.usage_by_attempt or ()
    return told if len(told) > 1 else ()


def asked(approval: Approval) -> str:
    """What was asked, and what came of it."""
    by = f" by {approval.decided_by}" if approval.decided_by else ""
    comment = f": {approval.comment}" if approval.comment else ""
    waits = f"waiting for {age(approval.since)}" if approval.since else "not asked yet"
    return clean(f"{approval.message} ({approval.decision or waits}{by}{comment})")


def events_table(events: tuple[Event, ...]) -> Table:
    rows = [(str(event.seq), moment(event.at), event.type, str(event.attempt), happened(event)) for event in events]
    return Table(
        columns=("SEQ", "AT", "TYPE", "ATTEMPT", "WHAT"),
        rows=rows,
        empty="nothing has happened since",
        wide=frozenset({"WHAT"}),
        least=("ATTEMPT",),
    )


def happened(event: Event) -> str:
    """The one thing that an event's data is about."""
    data = event.data if isinstance(event.data, dict) else {}
    said, error = data.get("progress"), data.get("error")
    if isinstance(error, dict):
        return known(f"{error.get('type')}: {error.get('message')}")
    if isinstance(said, dict):
        return known(said.get("message"))
    if isinstance(data.get("proof"), dict):
        return f"{known(data.get('status'))}; {proven(data['proof'])}"
    return known(data.get("text") or data.get("status") or data or None)


def proven(proof: dict[str, Any]) -> str:
    """What was done to the processes of an attempt: `SIGTERM to 2, SIGKILL to 1, none left`."""
    sent = [f"{each['signal']} to {len(each['pids'])}" for each in proof.get("signals", ())]
    return ", ".join([*sent, "none left"])


def why_facts(why: Why) -> Facts:
    details = why.details if isinstance(why.details, dict) else {}
    lines = [("reason", why.reason), ("message", known(why.message))]
    return Facts([*lines, *((name, known(value)) for name, value in details.items())])
