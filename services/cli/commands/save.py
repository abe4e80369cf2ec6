"""`windlass save`: a task's files, into a directory, over none that is there."""

import argparse
from pathlib import Path
from typing import Any

from windlass import Task, WindlassError
from windlass.client import calls
from windlass.services.cli import exit_codes
from windlass.services.cli.commands.arguments import Commands
from windlass.services.cli.display.texts import clean
from windlass.services.cli.download import Download, IsThere
from windlass.services.cli.references import AN_ID, TASK
from windlass.services.cli.session import Session, complain


def add_commands(commands: Commands) -> None:
    parser = commands.add("save", save, "save a task's files", f"windlass save {AN_ID} pictures")
    parser.add_argument("task_id", type=TASK.read, metavar="TASK")
    parser.add_argument(
        "directory", nargs="?", type=Path, default=Path(), metavar="DIR", help="made if need be; else here"
    )
    parser.add_argument("--overwrite", action="store_true", help="also files of that name that hold something else")


def save(session: Session, arguments: argparse.Namespace) -> int:
    task = session.client.perform(calls.get(arguments.task_id))
    contents = contents_of(task)
    if not contents:
        still = "" if task.has_ended else f": it is {task.status}"
        session.screen.remark(f"windlass: task {task.task_id} has no files{still}")
        return exit_codes.FAILED
    codes, saved = [], []
    for number, content_id in enumerate(contents, 1):
        try:
            with session.download(f"{calls.API}/media/{content_id}") as download:
                saved.append(_keep(session, download, arguments, f"{task.task_id}-{number}"))
        except WindlassError as error:
            complain(error, about=content_id)
            codes.append(exit_codes.exit_code(error))
        except OSError as error:
            session.screen.remark(f"windlass: {clean(str(error))}")
            codes.append(exit_codes.FAILED)
    if session.screen.as_json:
        session.screen.document({"items": saved})
    return codes[0] if codes else exit_codes.DONE


def _keep(session: Session, download: Download, arguments: argparse.Namespace, stem: str) -> dict[str, Any]:
    arguments.directory.mkdir(parents=True, exist_ok=True)
    path = arguments.directory / f"{stem}{download.extension}"
    try:
        download.keep(path, overwrite=arguments.overwrite)
        word = "saved"
    except IsThere:
        word = "was there already"
    if not session.screen.as_json:
        session.screen.line(f"{path}\t{word}")
    return {"path": str(path), "size_bytes": path.stat().st_size, "media_type": download.media_type}


def contents_of(task: Task) -> list[str]:
    ids = task.result.get("content_ids") if isinstance(task.result, dict) else None
    return [str(each) for each in ids] if isinstance(ids, list) else []
