"""Webhooks: who is told of what happens, and what has become of each delivery."""
