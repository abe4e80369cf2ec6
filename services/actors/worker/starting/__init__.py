"""Which tasks this process starts next: its free places, the queues that may have work, and tasks that it skips."""
