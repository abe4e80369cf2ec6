"""Agents are the operator's: there are those that are configured, for as long as that says."""

from windlass.shared.submission.checks.asking import Asking, Gives
from windlass.shared.submission.refusal import refusal
from windlass.shared.suggestions import meant


def check(asking: Asking) -> Gives:
    agents, name = asking.settings.agents, asking.payload["subagent_type"]
    if name not in agents:
        detail = f"no agent is called {name}; {meant(name, agents)}"
        raise refusal(f"{asking.below}/subagent_type", "unknown-agent", detail)
    # What an operator has set for an agent is what its tasks get, and the most that a client may ask for. An attempt
    # that follows a timeout gets more time all the same: else it would only time out again.
    most = agents[name].timeout_seconds
    return {} if most is None else {"timeout_seconds": min(asking.timeout_seconds or most, most)}
