"""Projects over REST: a backlog, and a run queue that can be stopped."""
