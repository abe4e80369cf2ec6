"""What is asked of memory, counted by the api that answers."""

from windlass.shared.metrics.declaring import API, counter

SEARCHES = counter(
    "windlass_memory_searches_total",
    "Questions to memory; `by` is fused, or text where no vector for the question came in time",
    ["by"],
    of=[API],
)
