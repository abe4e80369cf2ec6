"""Workflows: graphs of tasks without a conductor's process, and the people who are asked."""
