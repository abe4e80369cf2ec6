"""Projects: a backlog of tasks to be, and a run queue that can be stopped."""
