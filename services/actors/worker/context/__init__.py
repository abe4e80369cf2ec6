"""One attempt, seen from inside: what its actor is told, says and keeps. Of the worker it knows the metrics alone."""
