"""A submission as the api reads it: accepted, or refused with the fields that are wrong."""

from typing import Any

import pytest

from windlass.services.api.access.auth import Caller
from windlass.services.api.http.errors import Problem
from windlass.services.api.tasks.submission import accept
from windlass.shared.settings import Settings
from windlass.shared.store.tasks import Submission
from windlass.shared.submission.known import built_in_actors

ADMIN = Caller("a", "admin", "root")
USER = Caller("u", "user", "ann")
SETTINGS = Settings(providers={"slow": {"actor": "probe"}})
ACTORS = built_in_actors()
DRILLS = Settings(probe_faults=True)


def accepted(body: Any, caller: Caller = USER, settings: Settings = SETTINGS) -> Submission:
    return accept(body, caller, settings, ACTORS)


def refused(body: Any, caller: Caller = USER, settings: Settings = SETTINGS, *, below: str = "") -> Problem:
    with pytest.raises(Problem) as problem:
        accept(body, caller, settings, ACTORS, below=below)
    return problem.value


def pointers(problem: Problem) -> set[str]:
    assert problem.errors is not None
    assert all(each["detail"] for each in problem.errors)
    return {each["pointer"] for each in problem.errors}
