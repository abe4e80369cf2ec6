"""Schedules: what starts when, and what became of it.

The planner (`shared/schedules`) computes due times, `rules` decides about one of them, and `turn` carries that out
under the schedule's lock. The orchestrator fires what is due. The api triggers, backfills and changes with the same
code.
"""
