"""Workflows over REST: graphs of tasks, and the people who are asked."""
