"""Schedules: what is started when, and what became of each time that it was due."""
