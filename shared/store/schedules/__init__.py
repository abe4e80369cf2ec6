"""Schedules as they are read. What changes them is in `shared/features/schedules`."""

CHANNEL = "windlass_schedules"
"""Notified when a schedule was made or changed: another one may be due next."""
