"""Reads the settings for a process: it starts with all of them right, or says what is wrong and does not start."""

import os
import re
import sys
from pathlib import Path
from typing import Any, Final, NoReturn

from pydantic import ValidationError
from pydantic_settings import SettingsError

from windlass.shared.settings import Settings, read_tables
from windlass.shared.settings.mistakes import Reader, lines_of, unknown_variables
from windlass.shared.settings.variables import PREFIX

WRONG_SETTINGS: Final = 2
"""The exit code of a process that cannot start with its settings. Starting it again without a change is useless."""

NEEDED: Final = {
    "database_url": "the Postgres that stores the tasks, such as postgresql://user:password@host/database",
    "amqp_url": "the RabbitMQ that wakes the workers, such as amqp://user:password@host/",
    "fake_providers_url": "where the fake providers listen, such as http://127.0.0.1:8900",
}
"""The settings that only some processes need, and what each one must name."""


class WrongSettings(Exception):
    """What is wrong with the settings, a line for each mistake."""

    def __init__(self, mistakes: list[str]) -> None:
        super().__init__("; ".join(mistakes))
        self.mistakes = mistakes


def load_settings() -> Settings:
    """Raises WrongSettings with everything that is wrong."""
    mistakes = unknown_variables(os.environ, Settings.model_fields)
    try:
        settings = Settings()
    except ValidationError as error:
        raise WrongSettings(mistakes + lines_of(error, _reader())) from None
    except SettingsError as error:
        raise WrongSettings([*mistakes, _no_json(error)]) from None
    if mistakes:
        raise WrongSettings(mistakes)
    return settings


def settings_or_exit(*needed: str) -> Settings:
    """Exits with code 2 and one line on stderr for each mistake, and for each setting in `needed` that is not set."""
    try:
        settings = load_settings()
    except WrongSettings as error:
        exit_over_settings(*error.mistakes)
    if missing := [name for name in needed if getattr(settings, name) is None]:
        exit_over_settings(*(f"{PREFIX}{name}".upper() + f" is not set; it names {NEEDED[name]}" for name in missing))
    return settings


def exit_over_settings(*mistakes: str) -> NoReturn:
    for mistake in mistakes:
        print(f"windlass: {mistake}", file=sys.stderr)
    raise SystemExit(WRONG_SETTINGS)


def _reader() -> Reader:
    named = next((value for name, value in os.environ.items() if name.upper() == f"{PREFIX}CONFIG"), None)
    file = Path(named) if named else None
    return Reader(Settings, os.environ, file, _tables(file))


def _tables(file: Path | None) -> dict[str, Any]:
    try:
        return read_tables(file) if file else {}
    except ValueError:
        return {}


def _no_json(error: SettingsError) -> str:
    field = re.search(r'field "(\w+)"', str(error))
    variable = f"{PREFIX}{field[1]}".upper() if field else "a variable"
    return f'{variable}: must be JSON, as {{"name": {{"key": "value"}}}}'
