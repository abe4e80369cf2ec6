"""Schedules: one function per intent, each a single call that Postgres does whole."""

CHANNEL = "windlass_schedules"
"""Called with a schedule's id when it has changed, or something that it started has ended."""
