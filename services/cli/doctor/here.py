"""This machine: settings, disk, the servers that are named or could be started, ports, keys, the sandbox."""

import json
import platform
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from windlass.services.cli.doctor.finding import Finding, bad, note, ok
from windlass.shared.settings import Settings

SANDBOX_SECONDS: Final = 20
CONNECT_SECONDS: Final = 2.0
LITTLE_ROOM_BYTES: Final = 5 * 10**9
NO_ROOM_BYTES: Final = 10**9
SERVERS: Final = (
    # name in run.json, setting, port that its URLs may leave out, program, package
    ("postgres", "database_url", 5432, "/usr/lib/postgresql/*/bin/postgres", "postgresql"),
    ("rabbitmq", "amqp_url", 5672, "/usr/lib/rabbitmq/bin/rabbitmq-server", "rabbitmq-server"),
)


def look_here(settings: Settings) -> Iterator[Finding]:
    yield ok("versions", f"windlass {version('windlass')}, Python {platform.python_version()}")
    yield disk(settings.data_dir.absolute())
    for name, setting, port, program, package in SERVERS:
        yield server(settings, name, setting, port, program=program, package=package)
    yield api_port(settings)
    yield from provider_keys(settings)
    yield sandbox(settings)


def disk(directory: Path) -> Finding:
    """Of the data directory, or of where it would be made."""
    there = next(each for each in (directory, *directory.parents) if each.exists())
    free = shutil.disk_usage(there).free
    detail = f"{free / 10**9:.1f} GB free at {there}"
    remedy = "make room there, or name another place with WINDLASS_DATA_DIR; a full disk refuses every submit"
    if free < NO_ROOM_BYTES:
        return bad("disk", detail, remedy)
    return note("disk", detail, remedy) if free < LITTLE_ROOM_BYTES else ok("disk", detail)


def server(settings: Settings, name: str, setting: str, default_port: int, *, program: str, package: str) -> Finding:
    """The one that is named, else the one that `make up` runs here, else whether it could run one."""
    named = getattr(settings, setting)
    running = _run_file(settings.data_dir).get(name)
    url = named or (running.get("url") if isinstance(running, dict) else None)
    if url is not None:
        variable = f"WINDLASS_{setting.upper()}"
        remedy = (
            f"see that it runs and that {variable} is right" if named else "start `make up` again; its log says why"
        )
        return _reach(name, url, default_port, remedy)
    anchor = Path("/")
    if any(anchor.glob(program.lstrip("/"))):
        return ok(name, "none is named and none runs; `make up` can start one of its own")
    return bad(
        name,
        "none is named, and its programs are not installed",
        f"`make up` installs it, or: apt-get install {package}",
    )


def _reach(name: str, url: str, default_port: int, remedy: str) -> Finding:
    """That somebody listens is all that can be told without the server's own language."""
    try:
        address = urlsplit(url)
        host, port = address.hostname or "localhost", address.port or default_port
        with socket.create_connection((host, port), CONNECT_SECONDS):
            return ok(name, f"somebody listens at {host}:{port}")
    except (OSError, ValueError) as error:
        place = "its address" if isinstance(error, ValueError) else f"{host}:{port}"
        return bad(name, f"{place} cannot be reached ({error})", remedy)


def api_port(settings: Settings) -> Finding:
    running = _run_file(settings.data_dir).get("api")
    if isinstance(running, dict):
        return ok("port", f"`make up` serves at {running.get('url')}")
    port = settings.port
    try:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((settings.host, port))
    except OSError as error:
        detail = f"{settings.host}:{port} is taken ({error.strerror}); fine, if an api of yours listens there"
        return note("port", detail, "else name a free one with WINDLASS_PORT")
    return ok("port", f"{settings.host}:{port} is free for an api")


def provider_keys(settings: Settings) -> Iterator[Finding]:
    keyed = {name: each.api_key_env for name, each in settings.providers.items() if each.api_key_env is not None}
    missing = {name: variable for name, variable in keyed.items() if settings.endpoint_of(name) is None}
    if missing:
        names = ", ".join(f"{name} ({variable})" for name, variable in missing.items())
        played = all(map(settings.is_played, missing))
        yield note(
            "provider keys",
            f"here no key is set for {names}",
            "set the variable where the actors start; without it "
            + ("`make up` lets its bundled server play the provider" if played else "tasks of your own provider die"),
        )
    else:
        yield ok("provider keys", f"{len(keyed)} set" if keyed else "no provider needs one")


def sandbox(settings: Settings) -> Finding:
    command = [sys.executable, "-m", "windlass.services.actors.agent.check"]
    try:
        tried = subprocess.run(command, capture_output=True, text=True, timeout=SANDBOX_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return bad("sandbox", f"could not be tried ({error})", "try it again")
    if tried.returncode == 0:
        return ok("sandbox", "agents run in one")
    problem = (tried.stdout.strip() or tried.stderr.strip()).replace("\n", " ")
    remedy = "install bubblewrap and allow user namespaces, or see WINDLASS_AGENT_SANDBOX in docs/settings.md"
    is_needed = settings.agent_sandbox == "required"
    return (bad if is_needed else note)("sandbox", problem, remedy)


def _run_file(directory: Path) -> dict[str, Any]:
    try:
        content = json.loads((directory / "run.json").read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
