"""The `windlass` command in the test's own process, which is quick."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from windlass.services.cli.main import main


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)

    @property
    def rows(self) -> list[list[str]]:
        return [line.split("\t") for line in self.out.splitlines()]


Run = Callable[..., Result]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """What a terminal or a signal does to it is tried on real ones."""

    def run(*arguments: str) -> Result:
        try:
            code = main(arguments)
        except SystemExit as leaving:  # argparse' way of refusing
            code = int(leaving.code or 0)
        said = capsys.readouterr()
        return Result(code, said.out, said.err)

    return run
