"""Reads the settings for a process: it starts with all of them right, or says what is wrong and does not start."""

import os
import re
import sys
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_settings import SettingsError

from windlass.shared.settings import Settings, read_tables
from windlass.shared.settings.mistakes import Reader, lines_of, unknown_variables
from windlass.shared.settings.variables import PREFIX


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


def settings_or_exit() -> Settings:
    """For a process: a line on stderr for each mistake, and the exit code 1."""
    try:
        return load_settings()
    except WrongSettings as error:
        for mistake in error.mistakes:
            print(f"windlass: {mistake}", file=sys.stderr)
        raise SystemExit(1) from None


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
