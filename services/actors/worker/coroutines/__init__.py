"""Attempts that hold no thread: the loop that all of them share, and who looks after it."""
