"""A submission as the api reads it: accepted, or refused with the fields that are wrong."""

from typing import Any

import pytest

from services.api.auth import Caller
from services.api.errors import Problem
from services.api.submission import accept
from shared.settings import Settings
from shared.store.tasks import Submission

ADMIN = Caller("a", "admin", "root")
USER = Caller("u", "user", "ann")
SETTINGS = Settings(providers={"slow": {"actor": "probe"}})
DRILLS = Settings(probe_faults=True)


def accepted(body: Any, caller: Caller = USER, settings: Settings = SETTINGS) -> Submission:
    return accept(body, caller, settings)


def refused(body: Any, caller: Caller = USER, settings: Settings = SETTINGS, *, below: str = "") -> Problem:
    with pytest.raises(Problem) as problem:
        accept(body, caller, settings, below=below)
    return problem.value


def pointers(problem: Problem) -> set[str]:
    assert problem.errors is not None
    assert all(each["detail"] for each in problem.errors)
    return {each["pointer"] for each in problem.errors}
