"""Features: what happens after a task has moved. Each is a package with pure rules, queries and one subscriber.

The engine knows none of them. It writes the moves that a feature is subscribed to into the outbox. The orchestrator, or
the api before it answers, calls the subscriber. See docs/decisions/0089.
"""
