"""`windlass memory models | add-model | activate | delete-model | jobs | retry`: where vectors come from."""

import argparse
from typing import get_args

from windlass.client.memory import calls
from windlass.client.memory.documents import JobState
from windlass.services.cli.commands.arguments import Commands, count
from windlass.services.cli.commands.memory import views
from windlass.services.cli.references import AN_ID, JOB, MODEL
from windlass.services.cli.session import Session

MOST = 20


def add_actions(actions: Commands) -> None:
    actions.add("models", models, "show the models that vectors are of", "windlass memory models")

    parser = actions.add(
        "add-model",
        add_model,
        "let all events get vectors of another model",
        "windlass memory add-model text-embedding-3-small --provider vectors --dimensions 1536",
    )
    parser.add_argument("name", metavar="NAME", help="as its provider calls it")
    parser.add_argument("--provider", required=True, help="one that serves `embed` in the TOML file")
    parser.add_argument("--dimensions", required=True, type=count, metavar="N", help="how wide its vectors are")
    parser.add_argument("--activate-when-filled", action="store_true", help="it takes over by itself")

    for name, command, duty in (
        ("activate", activate, "ask questions in this model's vectors from now on"),
        ("delete-model", delete_model, "delete a model with all its vectors; not the active one"),
    ):
        parser = actions.add(name, command, duty, f"windlass memory {name} {AN_ID}")
        parser.add_argument("model_id", type=MODEL.read, metavar="MODEL")

    parser = actions.add("jobs", jobs, "list embedding jobs, newest first", "windlass memory jobs --state failed")
    parser.add_argument("--state", choices=get_args(JobState), help="what became of it")
    parser.add_argument("--limit", type=count, default=MOST, metavar="N", help=f"at most so many ({MOST})")

    parser = actions.add("retry", retry, "let a failed embedding job wait again", f"windlass memory retry {AN_ID}")
    parser.add_argument("job_id", type=JOB.read, metavar="JOB")


def models(session: Session, _arguments: argparse.Namespace) -> None:
    session.show(calls.models(), views.models_table)


def add_model(session: Session, arguments: argparse.Namespace) -> None:
    call = calls.add_model(
        arguments.name,
        arguments.provider,
        arguments.dimensions,
        activate_when_filled=arguments.activate_when_filled,
    )
    session.show(call, views.model_facts)


def activate(session: Session, arguments: argparse.Namespace) -> None:
    session.show(calls.activate_model(arguments.model_id), views.model_facts)


def delete_model(session: Session, arguments: argparse.Namespace) -> None:
    session.client.perform(calls.delete_model(arguments.model_id))
    session.screen.line(f"{arguments.model_id}\tdeleted")


def jobs(session: Session, arguments: argparse.Namespace) -> None:
    call = calls.jobs(arguments.state)
    document = session.ask_pages(call, arguments.limit)
    found = call.read(document).items
    note = f"these are the newest {len(found)}; --limit shows more" if document.get("next_cursor") else None
    session.screen.show(document, views.jobs_table(found, note))


def retry(session: Session, arguments: argparse.Namespace) -> None:
    session.show(calls.retry_job(arguments.job_id), views.job_facts)
