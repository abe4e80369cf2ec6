"""Projects, their backlogs and runs as people read them."""

from collections.abc import Iterator

from windlass.client.projects.documents import (
    Counts,
    ForceStopped,
    Item,
    OpenJob,
    Project,
    ProjectQueue,
    ProjectRun,
    Proof,
    StillRunning,
)
from windlass.services.cli.commands.tasks import proven
from windlass.services.cli.display.tables import Facts, Table
from windlass.services.cli.display.texts import age, clean, compact, describe, duration, known, moment


def projects_table(projects: tuple[Project, ...], empty: str, note: str | None) -> Table:
    rows = [
        (
            each.project_id, each.queue.state, known(each.queue.mode), str(each.queue.counts.waiting),
            str(each.queue.counts.done), str(each.queue.counts.failed), known(each.queue.stop_reason), known(each.name),
        )
        for each in projects
    ]  # fmt: skip
    columns = ("PROJECT", "STATE", "MODE", "WAITING", "DONE", "FAILED", "STOPPED", "NAME")
    return Table(columns, rows, empty, wide=frozenset({"NAME"}), note=note, least=("STOPPED", "MODE"))


def items_table(items: tuple[Item, ...], empty: str, note: str | None) -> Table:
    rows = [
        (each.item_id, each.state, known(each.task.get("actor")), known(each.task_id), about(each)) for each in items
    ]
    return Table(
        ("ITEM", "STATE", "ACTOR", "TASK", "TITLE"), rows, empty, wide=frozenset({"TITLE"}), note=note, least=("TASK",)
    )


def runs_table(runs: tuple[ProjectRun, ...], note: str | None) -> Table:
    rows = [
        (each.run_id, each.state, each.task_id, moment(each.started_at), lasted(each), how_it_ended(each))
        for each in runs
    ]
    columns = ("RUN", "STATE", "TASK", "STARTED", "LASTED", "WHAT")
    return Table(columns, rows, "it was never run", wide=frozenset({"WHAT"}), note=note, least=("TASK", "STARTED"))


def project_facts(project: Project) -> Facts:
    return Facts(
        [
            ("project", project.project_id),
            ("name", known(project.name)),
            *queue_facts(project.queue).lines,
            ("on failure", project.on_failure),
            ("defaults", compact(project.defaults) if project.defaults else ""),
            ("user_id", known(project.user_id)),
            ("created_at", known(project.created_at)),
            ("archived_at", known(project.archived_at)),
        ]
    )


def queue_facts(queue: ProjectQueue) -> Facts:
    return Facts(
        [
            ("state", queue.state),
            ("mode", known(queue.mode)),
            ("items", counted(queue.counts)),
            ("run", known(queue.current_run_id)),
            ("task", known(queue.current_task_id)),
            ("started_at", known(queue.started_at)),
            ("stopped_at", known(queue.stopped_at)),
            ("stop reason", known(queue.stop_reason)),
            ("last error", describe(queue.last_error) if queue.last_error is not None else ""),
            *(("still running", still_running(each)) for each in queue.still_running or ()),
            *(("open job", open_job(each)) for each in queue.open_jobs or ()),
        ]
    )


def force_stop_facts(stopped: ForceStopped) -> Facts:
    """First what was done, then what is left."""
    killed = [
        line
        for run in stopped.killed_runs
        for line in (("killed", f"run {run.run_id}, {run.state}"), *(("proof", each) for each in proofs(run)))
    ]
    return Facts([*killed, *queue_facts(stopped).lines])


def item_facts(item: Item) -> Facts:
    return Facts(
        [
            ("item", item.item_id),
            ("state", item.state),
            ("title", known(item.title)),
            ("position", item.position),
            ("task", compact(item.task)),
            ("run_id", known(item.run_id)),
            ("task_id", known(item.task_id)),
        ]
    )


def standing(queue: ProjectQueue) -> str:
    """What a queue does, in one line."""
    why = f", {queue.stop_reason}" if queue.state == "idle" and queue.stop_reason else ""
    error = f": {describe(queue.last_error)}" if why and queue.last_error is not None else ""
    return f"{queue.state}{why}{error}  {counted(queue.counts)}"


def counted(counts: Counts) -> str:
    states = ("waiting", "running", "done", "failed", "skipped")
    return ", ".join(f"{number} {state}" for state in states if (number := getattr(counts, state))) or "none"


def still_running(each: StillRunning) -> str:
    place = f" at {known(each.worker_id)} on {known(each.hostname)}" if each.worker_id else ""
    return f"task {each.task_id}{place} for {age(each.since)}: {clean(each.why)}"


def open_job(each: OpenJob) -> str:
    name = f"{known(each.provider_job_id)} " if each.provider_job_id else ""
    return f"{name}at {known(each.provider)} of task {each.task_id}, for {age(each.since)}: nobody can kill it"


def proofs(run: ProjectRun) -> Iterator[str]:
    for each in run.receipt.tasks if run.receipt is not None else ():
        yield f"task {each.task_id} {each.status}: {how_it_is_known(each)}"


def how_it_is_known(proof: Proof) -> str:
    if proof.proof is None:
        return "nothing was under way"
    done = f", {proven(proof.processes)}" if proof.processes else ""
    return f"{HOW[proof.proof] if proof.proof in HOW else clean(proof.proof)}{done}"


HOW = {
    "returned": "its worker said that the work had returned",
    "keeper": "the keeper of its processes saw the last of them die",
    "guardian": "the guardian of its worker saw the last of them die",
    "successor": "the successor of its worker found none of them left",
    "lease": "its lease is over, and nothing else is known",
}


def about(item: Item) -> str:
    payload = item.task.get("payload")
    return known(item.title) or (compact(payload) if payload else "")


def lasted(run: ProjectRun) -> str:
    if run.started_at is None:
        return ""
    return age(run.started_at) if run.ended_at is None else duration((run.ended_at - run.started_at).total_seconds())


def how_it_ended(run: ProjectRun) -> str:
    if run.receipt is not None:
        return "stopped by force"
    return describe(run.error) if run.error is not None else ""
