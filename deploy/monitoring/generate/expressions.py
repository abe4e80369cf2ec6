"""Pieces of PromQL that dashboards and rules have in common."""

RATE = "$__rate_interval"
ATTEMPTS = "windlass_attempts_finished_total"


def per_second(metric: str, by: str = "", window: str = RATE) -> str:
    """How often something happens, over all processes that count it."""
    return f"{summed(by)} (rate({metric}[{window}]))"


def at_times(metric: str, by: str) -> str:
    """The same of what is rare and better never happened: 0 where nothing did, and not an empty panel."""
    nothing = "vector(0)" if not by else f'label_replace(vector(0), "{by}", "none", "", "")'
    return f"{per_second(metric, by)} or on () {nothing}"


def quantile(share: float, histogram: str, by: str = "") -> str:
    """What this share of all stayed below; `histogram` is the metric, perhaps with a selector."""
    name, brace, selector = histogram.partition("{")
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({share:g}, sum by ({labels}) (rate({name}_bucket{brace}{selector}[{RATE}])))"


def mean(histogram: str, by: str = "") -> str:
    name, brace, selector = histogram.partition("{")
    amounts, counts = (per_second(f"{name}_{part}{brace}{selector}", by) for part in ("sum", "count"))
    return f"{amounts} / {counts}"


def of_the_cluster(gauge: str, by: str = "") -> str:
    """Every api says the same about the cluster: once is enough."""
    return f"max by ({by}) ({gauge})" if by else f"max({gauge})"


def recently(counter: str, by: str, window: str) -> str:
    """How much a counter grew, also one that is new: `increase` alone never sees the first event of a process."""
    grown = f"(increase({counter}[{window}]) > 0) or ({counter} unless {counter} offset {window})"
    return f"{summed(by)} ({grown})"


def summed(by: str) -> str:
    return f"sum by ({by})" if by else "sum"
