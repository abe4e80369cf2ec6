"""What an operator has decided about agents, or has to decide, said once as a worker starts."""

from collections.abc import Iterator, Mapping

from windlass.shared.settings import Settings


def notices(settings: Settings, why_no_sandbox: str, *, leads_outside: bool) -> Iterator[str]:
    """`why_no_sandbox` is empty where one works; `leads_outside` says whether slirp4netns is there."""
    modes = {name: settings.sandbox_of(name) for name in sorted(settings.agents)}
    if why_no_sandbox and (refused := _having("required", modes)):
        yield (
            f"NO SANDBOX: {why_no_sandbox}; these agents are refused: {refused}. "
            "They run without one if sandbox in their tables, or WINDLASS_AGENT_SANDBOX for all, is best-effort"
        )
    if loose := _having("best-effort", modes):
        if why_no_sandbox:
            yield f"NO SANDBOX: {why_no_sandbox}; these agents run without one: {loose}"
        else:
            yield f"these agents would run without a sandbox where none can be made (best-effort): {loose}"
    if open_ones := _having("off", modes):
        yield f"these agents run without a sandbox, as they are set: {open_ones}"
    connected = [name for name in modes if settings.agents[name].network]
    outside = [each for each in connected if leads_outside and modes[each] != "off"]
    if at_home := ", ".join(
        each for each in connected if each not in outside or settings.agents[each].network == "host"
    ):
        yield (
            "these agents have the network of this machine, loopback and link-local addresses included "
            f"(with slirp4netns and network = true they would reach public addresses alone): {at_home}"
        )


def _having(mode: str, modes: Mapping[str, str]) -> str:
    return ", ".join(name for name, its_mode in modes.items() if its_mode == mode)
