"""A workflow's life, one function per intent; its tasks are those of `shared/store/tasks`."""
