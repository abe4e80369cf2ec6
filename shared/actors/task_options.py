"""The names of a task's own fields, for whoever has to tell them from its payload's and does without pydantic."""

OPTIONS = frozenset({
    "provider", "task_type", "priority", "max_retries", "retry_delays", "timeout_seconds", "max_age_seconds", "run_at",
    "delay_seconds", "tags", "project_id", "workflow_id", "parent_task_id", "depends_on", "dedupe_key",
    "dedupe_ttl_seconds", "webhook_url", "user_id", "approval",
})  # fmt: skip
