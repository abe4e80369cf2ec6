"""One attempt, seen from inside: the same rules in a worker, in a process of its own and in a test."""
