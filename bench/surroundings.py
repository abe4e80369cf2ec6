"""What was measured and on what: versions, cores, and how durable Postgres says it is."""

import asyncio
import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Mapping
from typing import Any

import asyncpg
import httpx

from tests.support.servers.databases import PROJECT
from tests.support.servers.private_servers import Servers

DURABILITY = ("fsync", "synchronous_commit", "full_page_writes", "wal_level")


def surroundings(servers: Servers) -> dict[str, Any]:
    """Nothing that tells one machine from another of its size."""
    postgres, durability = asyncio.run(_postgres(servers.database_url))
    return {
        "versions": {
            "Python": platform.python_version(),
            "Postgres": postgres,
            "RabbitMQ": _rabbitmq(servers.management_url),
            "Dramatiq": importlib.metadata.version("dramatiq"),
        },
        "cores": os.cpu_count(),
        "durability": durability,
    }


def commit() -> str:
    """The commit that was measured, and whether the files had been changed since, but for pages that a part before it
    has drawn anew; empty without a repository."""
    found = _git("rev-parse", "--short=12", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs", ":!README.md")
    return f"{found} with changes" if found and changed else found


def _git(*arguments: str) -> str:
    try:
        ended = subprocess.run(["git", *arguments], cwd=PROJECT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return ended.stdout.strip() if ended.returncode == 0 else ""


async def _postgres(url: str) -> tuple[str, Mapping[str, str]]:
    connection = await asyncpg.connect(url)
    try:
        version = str(await connection.fetchval("SHOW server_version")).split()[0]
        return version, {name: await connection.fetchval(f"SHOW {name}") for name in DURABILITY}
    finally:
        await connection.close()


def _rabbitmq(management_url: str | None) -> str:
    """As its HTTP API tells; only throw-away servers have that."""
    assert management_url
    with httpx.Client(base_url=management_url, trust_env=False) as client:
        return str(client.get("/api/overview").raise_for_status().json()["rabbitmq_version"])
