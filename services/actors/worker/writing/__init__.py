"""The one way to Postgres for tasks: what many want written goes together, and in order."""
