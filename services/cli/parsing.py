"""How the command line is read: a mistake is one line, with what would have been right, and a help has an example."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from windlass.services.cli import exit_codes


class Parser(argparse.ArgumentParser):
    """`intermixed`: arguments and options come in any order."""

    def __init__(self, *, example: str = "", intermixed: bool = False, **options: Any) -> None:
        epilog = "\n\n".join(filter(None, (options.pop("epilog", None), f"example:\n  {example}" if example else "")))
        options |= {"epilog": epilog, "allow_abbrev": False, "formatter_class": argparse.RawDescriptionHelpFormatter}
        super().__init__(**options)
        self._intermixed = intermixed
        self._is_reading = False

    def parse_known_args(  # type: ignore[override] # as everywhere: a namespace of ours, or none
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Whatever a command does not know is refused by that command, which knows what it could have been."""
        if self._is_reading:  # argparse itself reads an intermixed line in several turns
            return super().parse_known_args(args, namespace)
        self._is_reading = True
        try:
            read = self.parse_known_intermixed_args if self._intermixed else super().parse_known_args
            found, unknown = read(args, namespace)
        finally:
            self._is_reading = False
        if unknown:
            self.error(self._about_unknown(unknown[0]))
        return found, []

    def error(self, message: str) -> NoReturn:
        hint = "" if "did you mean" in message else f"; `{self.prog} --help` shows how"
        print(f"{self.prog}: {message}{hint}", file=sys.stderr)
        raise SystemExit(exit_codes.USAGE)

    def _about_unknown(self, word: str) -> str:
        name = word.partition("=")[0]
        if not name.startswith("-"):
            return f"{word!r} is one word too many"
        return f"there is no option {name}{did_you_mean(name, self._option_string_actions)}"

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        choices = [str(each) for each in action.choices]
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - argparse has no other name for it
            self.error(f"there is no command {value!r}{did_you_mean(str(value), choices)}")
        guess = did_you_mean(str(value), choices)
        raise argparse.ArgumentError(action, f"{value!r} is not one of {', '.join(choices)}{guess}")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a sentence, or nothing when no known word is near."""
    near = get_close_matches(word, list(known), n=1)
    return f"; did you mean `{near[0]}`?" if near else ""
