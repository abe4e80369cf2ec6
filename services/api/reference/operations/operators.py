"""What the operations for operators take and answer, beside what their handlers say themselves."""

from windlass.services.api.access.keys import NewKey
from windlass.services.api.access.reasons import Reasoned
from windlass.services.api.operators.providers import EveryProviderChange, ProviderChange
from windlass.services.api.reference.documents import operators
from windlass.services.api.reference.operation import Answer, Operation
from windlass.services.api.tasks.dead_letters import Revival

A_PROVIDER = Answer("The provider as it is now.", (operators.ProviderDocument,))

OPERATOR_OPERATIONS: dict[tuple[str, str], Operation] = {
    ("GET", "/api/v1/overview"): Operation(
        "Operate", "See what has happened", {200: Answer("Since then.", (operators.OverviewDocument,))}
    ),
    ("GET", "/api/v1/queues/status"): Operation(
        "Operate", "See every queue", {200: Answer("The queues now.", (operators.QueuesDocument,))}
    ),
    ("GET", "/api/v1/queues/dlq"): Operation(
        "Operate",
        "List the dead letters",
        {200: Answer("Tasks, or with `group_by` kinds of errors.", (operators.DeadPage, operators.DeadGroups))},
    ),
    ("POST", "/api/v1/queues/dlq/revive"): Operation(
        "Operate",
        "Revive dead letters",
        {
            200: Answer("With `dry_run`: how many it would be.", (operators.MatchedDocument,)),
            202: Answer("It has begun.", (operators.StartedBulk,)),
        },
        problems=(403,),
        body=Revival,
        example={"filter": {"error_type": "ServiceUnavailable"}, "canary": 3},
    ),
    ("GET", "/api/v1/providers"): Operation(
        "Operate", "List providers", {200: Answer("The providers.", (operators.ProviderList,))}
    ),
    ("PATCH", "/api/v1/providers"): Operation(
        "Operate",
        "Pause everything, or let it go on",
        {200: Answer("The providers as they are now.", (operators.ProviderList,))},
        problems=(403,),
        body=EveryProviderChange,
        example={"paused": True, "reason": "the provider's invoice is wrong"},
    ),
    ("GET", "/api/v1/providers/{name}"): Operation("Operate", "Read a provider", {200: A_PROVIDER}, problems=(404,)),
    ("PATCH", "/api/v1/providers/{name}"): Operation(
        "Operate",
        "Change a provider",
        {200: A_PROVIDER},
        problems=(403, 404),
        body=ProviderChange,
        example={"limit": 3, "paused": False, "breaker": "auto", "reason": "their new quota"},
    ),
    ("GET", "/api/v1/providers/{name}/events"): Operation(
        "Operate",
        "Read a provider's history",
        {200: Answer("A page.", (operators.ProviderEventPage,))},
        problems=(403, 404),
    ),
    ("POST", "/api/v1/keys"): Operation(
        "Keys",
        "Make a key",
        {201: Answer("The key, this once.", (operators.NewKeyDocument,))},
        problems=(403,),
        body=NewKey,
        example={"role": "user", "user_id": "alice", "name": "alice's laptop"},
    ),
    ("GET", "/api/v1/keys"): Operation(
        "Keys", "List the keys", {200: Answer("A page.", (operators.KeyPage,))}, problems=(403,)
    ),
    ("DELETE", "/api/v1/keys/{key_id}"): Operation(
        "Keys", "Revoke a key", {200: Answer("The key.", (operators.KeyDocument,))}, problems=(403, 404, 409)
    ),
    ("GET", "/api/v1/audit"): Operation(
        "Keys", "Read the audit log", {200: Answer("A page.", (operators.AuditPage,))}, problems=(403,)
    ),
    ("GET", "/api/v1/workers"): Operation(
        "Operate", "List workers", {200: Answer("The workers.", (operators.WorkerList,))}, problems=(403,)
    ),
    ("POST", "/api/v1/workers/{worker_id}/drain"): Operation(
        "Operate",
        "Drain a worker",
        {202: Answer("It has been told.", (operators.WorkerDocument,))},
        problems=(403, 404, 409),
        body=Reasoned,
        body_required=False,
        example={"reason": "it leaks"},
    ),
    ("POST", "/api/v1/tasks/{task_id}/kill-worker"): Operation(
        "Operate",
        "Kill a task's worker, in a drill",
        {202: Answer("It has been told.", (operators.KilledDocument,))},
        problems=(403, 404, 409),
        body=Reasoned,
        body_required=False,
        example={"reason": "to see what happens"},
    ),
    ("GET", "/api/v1/stats"): Operation(
        "Operate", "Read the daily figures", {200: Answer("The figures.", (operators.StatisticsList,))}
    ),
    ("GET", "/health/live"): Operation(
        "Health", "Is the process alive?", {200: Answer("It answers.", (operators.LiveDocument,))}
    ),
    ("GET", "/health/ready"): Operation(
        "Health",
        "Can tasks be accepted?",
        {
            200: Answer("They can.", (operators.ReadyDocument,)),
            503: Answer("Not now: Postgres or the schema is missing.", (operators.ReadyDocument,)),
        },
    ),
    ("GET", "/health"): Operation(
        "Health", "How is everything?", {200: Answer("In one word, and in parts.", (operators.HealthDocument,))}
    ),
    ("GET", "/metrics"): Operation(
        "Health",
        "Metrics for Prometheus",
        {200: Answer("In Prometheus' text format.", media_type="text/plain")},
        problems=(401, 403, 429, 503),
    ),
}
