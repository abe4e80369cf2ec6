"""Projects: a backlog of items and at most one open run.

`rules` decides, `turn` carries a decision out under the project's lock, `operations` and `backlog` are what callers
ask for, and the subscriber follows the tasks of runs.
"""
