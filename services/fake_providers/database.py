"""The file in which everything is kept, so that a server that is killed knows all of it when it comes back."""

import sqlite3
from pathlib import Path

SCHEMA = """
CREATE TABLE IF NOT EXISTS orders (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    provider TEXT NOT NULL,
    job_id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    prompt TEXT NOT NULL,
    request TEXT NOT NULL,
    behaviour TEXT NOT NULL,
    at REAL NOT NULL,
    ends_at REAL,
    outcome TEXT NOT NULL,
    ended TEXT,
    polls INTEGER NOT NULL DEFAULT 0,
    callback_url TEXT,
    is_told INTEGER NOT NULL DEFAULT 0,
    is_deleted INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS running ON orders (provider) WHERE ended IS NULL;
CREATE TABLE IF NOT EXISTS peaks (provider TEXT PRIMARY KEY, most INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS calls (
    provider TEXT NOT NULL, call TEXT NOT NULL, status TEXT NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (provider, call, status)
);
CREATE TABLE IF NOT EXISTS callbacks (
    provider TEXT NOT NULL, job_id TEXT NOT NULL, url TEXT NOT NULL, status TEXT NOT NULL, at REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS scripts (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    provider TEXT NOT NULL, match TEXT NOT NULL, word TEXT NOT NULL, times INTEGER
);
CREATE TABLE IF NOT EXISTS heard (
    provider TEXT NOT NULL, text TEXT NOT NULL, word TEXT NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (provider, text, word)
);
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS uploads (upload_id TEXT PRIMARY KEY, fields TEXT NOT NULL, picture BLOB);
"""
TABLES = ("orders", "peaks", "calls", "callbacks", "scripts", "heard", "settings", "uploads")


def open_database(directory: Path) -> sqlite3.Connection:
    directory.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(directory / "books.sqlite", isolation_level=None)
    database.row_factory = sqlite3.Row
    # What is committed outlives the process, if not the machine: nobody is paid here.
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = NORMAL")
    database.executescript(SCHEMA)
    return database


def forget_everything(database: sqlite3.Connection) -> None:
    with database:
        database.execute("BEGIN")
        for table in TABLES:
            database.execute(f"DELETE FROM {table}")  # noqa: S608 - the names are above
