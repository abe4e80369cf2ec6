"""Workflows: graphs of tasks. Counts, status, escalation, cancel, and `for_each` nodes follow from their tasks."""
