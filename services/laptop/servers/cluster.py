"""The files of a private Postgres: where they are, how they are made, what its configuration says."""

import asyncio
import hashlib
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

from windlass.services.laptop.kept_files import make_directory, write_kept
from windlass.services.laptop.packages import find_postgres
from windlass.services.laptop.ports import LOOPBACK
from windlass.services.laptop.supervision.children import Children
from windlass.services.laptop.supervision.unit import StartFailure
from windlass.services.laptop.supervision.waiting import until
from windlass.shared.process.accounts import Account
from windlass.shared.process.procfs import running_in

SUPERUSER: Final = "windlass"
SHELTER: Final = Path("/var/lib/windlass")
LEFTOVER_SECONDS: Final = 10

CONFIGURATION: Final = """\
# Written anew at every start. To tune this server use ALTER SYSTEM, which has its own file.
listen_addresses = '{host}'
port = {port}
unix_socket_directories = ''
password_encryption = 'scram-sha-256'
max_connections = 200
# A task that was accepted is on the disk: these three stay on.
fsync = on
synchronous_commit = on
full_page_writes = on
# A session that somebody has left open in a transaction may keep tasks locked: whoever it is, it is ended while the
# leases of those still last. A session that has to be longer about it says so itself, as pg_dump does.
idle_in_transaction_session_timeout = '10s'
# What lives is found by small indexes, which keep the entries of what has ended until a vacuum: whether one is due is
# looked at every 10 s. How much it may do at a time is said by the table.
autovacuum_naptime = '10s'
timezone = 'UTC'
log_timezone = 'UTC'
log_destination = 'stderr'
logging_collector = off
log_checkpoints = off
log_line_prefix = '%m '
# A lock that was not waited for is an error to this server and an answer to whoever asked, who says so in his own log.
# What the server has to say of itself is LOG and worse.
log_min_messages = 'log'
"""
HOST_BASED_ACCESS: Final = "host all all {host}/32 scram-sha-256\n"


def place_for(directory: Path, account: Account | None, say: Callable[[str], None]) -> Path:
    """Where the cluster is or shall be: `data` in the directory, or what that link points to.

    Root's directories are often closed to the account that Postgres runs under; then the files find shelter
    in /var/lib/windlass, and the link keeps the connection.
    """
    data = directory / "data"
    if data.is_symlink() and not data.exists():
        raise StartFailure(f"{data} points to {data.readlink()}, which is gone: the database was there")
    if data.exists():
        if account and not account.can_reach(data.resolve().parent):
            raise StartFailure(f"user {account.name} cannot reach {data} any more: open the way to it")
        return data.resolve()
    if account is None or account.can_reach(directory):
        return data
    shelter = _new_shelter(directory)
    say(f"user {account.name} cannot reach {directory}: the database is kept in {shelter}")
    data.symlink_to(shelter / "data")
    return shelter / "data"


def _new_shelter(directory: Path) -> Path:
    """Never one that exists: its database would belong to a data directory that was removed."""
    name = hashlib.sha256(os.fsencode(directory.resolve())).hexdigest()[:12]
    make_directory(SHELTER, leads_to_postgres=True)
    number = 1
    while (shelter := SHELTER / (name if number == 1 else f"{name}-{number}")).exists():
        number += 1
    return make_directory(shelter, leads_to_postgres=True)


def programs_for(data: Path) -> Path:
    """The newest Postgres, but for an existing cluster the one that wrote it."""
    try:
        major = (data / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        major = None
    programs = find_postgres(major=major)
    if programs is None:
        package = f"postgresql-{major}" if major else "postgresql"
        raise StartFailure(f"the programs of the database server are missing: install {package}")
    return programs


async def create_cluster(
    data: Path, programs: Path, password: str, account: Account | None, children: Children
) -> None:
    """Makes the cluster beside its place and moves it there complete: a half-made one is never used."""
    new, password_file = data.with_name("data.new"), data.with_name("password.new")
    await asyncio.to_thread(shutil.rmtree, new, ignore_errors=True)
    new.mkdir(mode=0o700)
    write_kept(password_file, password)
    if account:
        for path in (new, password_file):
            os.chown(path, account.uid, account.gid)
    finished = await children.run(
        [
            programs / "initdb",
            f"--pgdata={new}",
            f"--username={SUPERUSER}",
            f"--pwfile={password_file}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
        ],
        environment={"PATH": os.defpath, "LANG": "C.UTF-8"},
        directory=data.parent,
        account=account,
    )
    password_file.unlink()
    if finished.code != 0:
        raise StartFailure(f"initdb failed:\n{finished.output}")
    new.rename(data)


def write_configuration(data: Path, port: int) -> None:
    (data / "postgresql.conf").write_text(CONFIGURATION.format(host=LOOPBACK, port=port))
    (data / "pg_hba.conf").write_text(HOST_BASED_ACCESS.format(host=LOOPBACK))


def is_ready(data: Path, pid: int) -> bool:
    """As pg_ctl finds out: in the last line of its lock file the server says how far it is."""
    try:
        lines = (data / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return False
    return lines[:1] == [str(pid)] and lines[-1].strip() == "ready"


async def clear_leftovers(data: Path, say: Callable[[str], None]) -> None:
    """Ends every Postgres process that a killed supervisor left in this cluster, then its lock file.

    With the file, a reused process number would keep Postgres from starting. Without it, Postgres would not
    notice a predecessor's orphans that still write to its files: so they are looked for, and go first.
    """
    left = running_in(data, "postgres")
    if left:
        say(f"stopping the Postgres that was left behind (process {left[0].pid})")
    for process in left:
        process.send(signal.SIGINT)
    if not await until(lambda: not running_in(data, "postgres"), LEFTOVER_SECONDS, every=0.1):
        for process in running_in(data, "postgres"):
            process.send(signal.SIGKILL)
        if not await until(lambda: not running_in(data, "postgres"), LEFTOVER_SECONDS, every=0.1):
            raise StartFailure(f"another Postgres runs in {data} and cannot be stopped")
    (data / "postmaster.pid").unlink(missing_ok=True)
