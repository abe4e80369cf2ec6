"""`windlass providers`: limits, pauses and breakers, and changing them."""

import argparse
from typing import Any, cast

from windlass import Provider, ProviderChange, Rate
from windlass.client import calls
from windlass.client.task import Listing
from windlass.services.cli.commands import provider_check
from windlass.services.cli.commands.arguments import Commands, add_reason
from windlass.services.cli.display.tables import Facts, Table
from windlass.services.cli.display.texts import age, known, moment
from windlass.services.cli.session import Session

CONFIGURED = "default"


def add_commands(commands: Commands) -> None:
    actions = Commands.below(
        commands.add("providers", providers, "show each provider's limit, slots and breaker", "windlass providers")
    )
    parser = actions.add("show", show, "show one provider and who holds its slots", "windlass providers show leonardo")
    parser.add_argument("name", metavar="NAME")
    parser = actions.add(
        "set",
        change,
        "change a provider, in force everywhere within a second",
        "windlass providers set leonardo --limit 2 --rate 10/60",
    )
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("--limit", type=limit, metavar="N", help=f"tasks at once; {CONFIGURED}: as configured")
    parser.add_argument("--rate", type=rate, metavar="N/SECONDS", help=f"starts in so many seconds, or {CONFIGURED}")
    pause = parser.add_mutually_exclusive_group()
    pause.add_argument("--pause", dest="paused", action="store_true", default=None, help="start nothing new")
    pause.add_argument("--resume", dest="paused", action="store_false", default=None, help="go on")
    parser.add_argument("--breaker", choices=("auto", "open", "closed"), help="auto: let the results decide")
    add_reason(parser)
    parser.set_defaults(refuse=parser.error)
    for name, paused, duty in (("pause", True, "start nothing new anywhere"), ("resume", False, "go on everywhere")):
        parser = actions.add(name, change_all, duty, f"windlass providers {name} --reason maintenance")
        add_reason(parser)
        parser.set_defaults(paused=paused)
    provider_check.add_command(actions)


def providers(session: Session, _arguments: argparse.Namespace) -> None:
    session.show(calls.providers(), providers_table)


def show(session: Session, arguments: argparse.Namespace) -> None:
    session.show(calls.provider(arguments.name), provider_facts)


def change(session: Session, arguments: argparse.Namespace) -> None:
    wanted = wanted_change(arguments)
    if not set(wanted) - {"reason"}:
        arguments.refuse("say what to change: --limit, --rate, --pause, --resume or --breaker")
    session.show(calls.set_provider(arguments.name, wanted), provider_facts)


def change_all(session: Session, arguments: argparse.Namespace) -> None:
    session.show(calls.set_every_provider(paused=arguments.paused, reason=arguments.reason), providers_table)


def wanted_change(arguments: argparse.Namespace) -> ProviderChange:
    """Only what was given: for the API null is a wish of its own, to go back to the configuration."""
    given = {name: getattr(arguments, name) for name in ProviderChange.__annotations__}
    wanted = {name: None if value == CONFIGURED else value for name, value in given.items() if value is not None}
    return cast(ProviderChange, wanted)


def limit(text: str) -> int | str:
    if text == CONFIGURED or (text.isascii() and text.isdigit()):
        return text if text == CONFIGURED else int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is neither a number from 0 on nor {CONFIGURED!r}")


def rate(text: str) -> Rate | str:
    if text == CONFIGURED:
        return text
    number, _, per = text.partition("/")
    if not all(part.isascii() and part.isdigit() for part in (number, per)):
        raise argparse.ArgumentTypeError(f"{text!r} is not like 10/60 (ten in sixty seconds), nor {CONFIGURED!r}")
    return {"limit": int(number), "per_seconds": int(per)}


def providers_table(answer: Listing[Provider]) -> Table:
    rows = [
        (
            each.name, queues(each), slots(each), rate_text(each.rate.effective), "yes" if each.paused else "",
            each.breaker.state, known(each.workers), why_it_rests(each),
        )
        for each in answer.items
    ]  # fmt: skip
    columns = ("PROVIDER", "QUEUES", "SLOTS", "RATE", "PAUSED", "BREAKER", "WORKERS", "BECAUSE")
    return Table(
        columns, rows, "no provider is configured", wide=frozenset({"BECAUSE", "QUEUES"}), least=("RATE", "WORKERS")
    )


def queues(provider: Provider) -> str:
    return ", ".join(provider.queues or (provider.queue,))


def provider_facts(provider: Provider) -> Facts:
    holders = provider.slots.holders or ()
    overridden = [name for name in ("limit", "rate") if getattr(provider, name).override is not None]
    return Facts(
        [
            ("provider", provider.name),
            ("queues", queues(provider)),
            ("slots", slots(provider)),
            ("rate", rate_text(provider.rate.effective)),
            ("rate left", "" if provider.rate.left is None else str(provider.rate.left)),
            ("free at", "" if provider.rate.free_at is None else moment(provider.rate.free_at)),
            ("overridden", ", ".join(overridden)),
            ("paused", "yes" if provider.paused else "no"),
            ("breaker", provider.breaker.state),
            ("mode", provider.breaker.mode),
            ("because", why_it_rests(provider)),
            ("workers", known(provider.workers)),
            *(("slot", f"{each.task_id} for {age(each.since)} at {known(each.worker_id)}") for each in holders),
        ]
    )


def slots(provider: Provider) -> str:
    most = provider.limit.effective
    return f"{provider.slots.held}/{'∞' if most is None else most}"


def rate_text(rate: Any) -> str:
    return f"{rate.get('limit')}/{rate.get('per_seconds'):g}s" if isinstance(rate, dict) else ""


def why_it_rests(provider: Provider) -> str:
    """Why nothing starts there, if nothing does."""
    if provider.pause is not None:
        until = f" until {moment(provider.pause.until)}" if provider.pause.until else ""
        return known(f"{provider.pause.reason or 'paused'}{until}")
    return known(provider.breaker.reason) if provider.breaker.state != "closed" else ""
