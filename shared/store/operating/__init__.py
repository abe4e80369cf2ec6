"""The house as its operators see it: processes, queues, figures, room on disk, what to do after a restore."""
