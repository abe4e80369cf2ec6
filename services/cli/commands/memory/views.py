"""Agent events, what was found, models and jobs as people read them."""

from windlass import AgentEvent, EmbeddingJob, EmbeddingModel, Found
from windlass.client.task import Listing
from windlass.services.cli.display.tables import Facts, Table
from windlass.services.cli.display.texts import age, clean, compact, known, ratio


def found_table(found: Found) -> Table:
    rows = [
        (
            each.event.event_id, each.event.status, doer(each.event), age(each.event.at), ", ".join(each.matched),
            clean(each.event.title),
        )
        for each in found.items
    ]  # fmt: skip
    columns = ("EVENT", "STATUS", "BY", "AGE", "MATCHED", "WHAT")
    return Table(columns, rows, "nothing like that was done", wide=frozenset({"WHAT"}), note=how_it_was_found(found))


def how_it_was_found(found: Found) -> str:
    if found.model is None:
        return "by words alone: no model is active"
    if found.degraded:
        return f"by words alone: {clean(found.model.name)} made no vector for the question in time"
    covered = "" if found.coverage is None else f"; {ratio(found.coverage)} of what there is has a vector"
    among = "" if found.exact else "; compared with the newest, and with what shares a word"
    return f"by words and by {clean(found.model.name)}{covered}{among}"


def doer(event: AgentEvent) -> str:
    return known(event.subagent_type or event.actor)


def events_table(events: tuple[AgentEvent, ...], empty: str, note: str | None) -> Table:
    rows = [(each.event_id, each.status, doer(each), age(each.at), clean(each.title)) for each in events]
    return Table(("EVENT", "STATUS", "BY", "AGE", "WHAT"), rows, empty, wide=frozenset({"WHAT"}), note=note)


def event_facts(event: AgentEvent) -> Facts:
    lines = [line for line in map(clean, event.text.splitlines()) if line]
    names = ("actor", "subagent_type", "provider", "task_id", "life", "attempt", "user_id", "project_id", "workflow_id")
    return Facts(
        [
            ("event", event.event_id),
            ("status", event.status),
            *(("text", line) for line in lines),
            ("data", compact(event.data) if event.data else ""),
            *((name, known(getattr(event, name))) for name in names),
            ("at", known(event.at)),
        ]
    )


def models_table(answer: Listing[EmbeddingModel]) -> Table:
    rows = [
        (
            each.model_id, each.state, clean(each.name), each.provider, str(each.dimensions), known(each.vectors),
            known(each.missing), age(each.created_at),
        )
        for each in answer.items
    ]  # fmt: skip
    columns = ("MODEL", "STATE", "NAME", "PROVIDER", "DIMENSIONS", "VECTORS", "MISSING", "AGE")
    return Table(
        columns, rows, "there is no model: memory is searched by words alone", least=("DIMENSIONS", "PROVIDER")
    )


def model_facts(model: EmbeddingModel) -> Facts:
    names = ("name", "state", "provider", "dimensions", "vectors", "missing", "created_at", "activated_at")
    return Facts([("model", model.model_id), *((name, known(getattr(model, name))) for name in names)])


def jobs_table(jobs: tuple[EmbeddingJob, ...], note: str | None) -> Table:
    rows = [(each.job_id, each.state, str(each.events), age(each.updated_at), each.task_id, why(each)) for each in jobs]
    columns = ("JOB", "STATE", "EVENTS", "SINCE", "TASK", "ERROR")
    return Table(columns, rows, "no embedding job is like that", wide=frozenset({"ERROR"}), note=note, least=("TASK",))


def job_facts(job: EmbeddingJob) -> Facts:
    names = ("state", "events", "task_id", "model_id", "created_at", "updated_at")
    known_of = [(name, known(getattr(job, name))) for name in names]
    return Facts([("job", job.job_id), *known_of, ("error", why(job))])


def why(job: EmbeddingJob) -> str:
    return "" if job.error is None else clean(f"{job.error.type}: {job.error.message}")
