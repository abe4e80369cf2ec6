"""Schedules: when they are due, what becomes of each due time, and what is started then. Nothing here asks anybody."""
