"""`windlass up --actors`: its processes are told by the environment what to load."""

import os
from pathlib import Path

import pytest

from windlass.services.cli.main import main


class Became(BaseException):
    """In the place of the process that the command would become."""


def test_files_and_modules_are_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    became: list[str] = []

    def execv(_path: str, arguments: list[str]) -> None:
        became[:] = arguments[1:]
        raise Became

    monkeypatch.setattr(os, "execv", execv)
    monkeypatch.setenv("WINDLASS_ACTORS", "")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Became):
        main(["up", "--actors", "our_actors.py", "--actors", "our_app.actors"])
    assert os.environ["WINDLASS_ACTORS"] == f"{tmp_path}/our_actors.py,our_app.actors"
    assert became == ["-m", "windlass.services.laptop"]
    with pytest.raises(Became):
        main(["up", "--actors", "our_actors.py", "--reload"])
    assert became == ["-m", "windlass.services.laptop", "--reload"]
