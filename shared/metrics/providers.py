"""Calls to providers, what they cost, and agents that had to be ended."""

from windlass.shared.metrics.declaring import ACTORS, CALL_SECONDS, counter, histogram

CALLS = counter(
    "windlass_provider_calls_total",
    "Requests to a provider: `result` is ok, rate_limited, refused, failed, timeout or unreachable",
    ["provider", "operation", "result"],
    of=[ACTORS],
)
CALL_SECONDS_TAKEN = histogram(
    "windlass_provider_call_seconds",
    "How long a request to a provider took, whatever came of it",
    ["provider", "operation"],
    buckets=CALL_SECONDS,
    of=[ACTORS],
)
COST_USD = counter("windlass_provider_cost_usd_total", "What providers said that work cost", ["provider"], of=[ACTORS])
TOKENS = counter(
    "windlass_provider_tokens_total",
    "Tokens that providers counted; `direction` is prompt or completion",
    ["provider", "direction"],
    of=[ACTORS],
)
MEDIA_BYTES = counter("windlass_media_bytes_total", "Bytes of media fetched and kept", ["provider"], of=[ACTORS])
AGENT_KILLS = counter(
    "windlass_agent_kills_total",
    "Agents ended with all below them; `reason` is cancelled, timeout, memory, cpu, processes, disk, files, "
    "stopped (its worker was), lost (its lease was), leftovers (it ended by itself and left processes behind) or other",
    ["reason"],
    of=[ACTORS],
)
