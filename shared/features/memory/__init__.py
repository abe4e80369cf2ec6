"""Memory: one agent event for each life of a task that ended, and the state of embedding jobs."""
