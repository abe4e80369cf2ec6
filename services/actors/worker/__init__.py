"""The machine around the actors: `executor.py` has an attempt from its grant to its end.

Beside it stand those who call it, and what the rooms have in common.
"""
