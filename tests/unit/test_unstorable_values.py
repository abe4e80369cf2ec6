"""A value that Postgres refuses is the client's to mend, and the row that it would have been in is nobody's to read."""

import asyncpg

from windlass.services.api.http.errors import unstorable
from windlass.shared.db import Unstorable


def test_it_says_what_is_wrong_and_nothing_of_the_row() -> None:
    refused = asyncpg.CheckViolationError('new row for relation "tasks" violates check constraint "tasks_priority"')
    refused.detail = "Failing row contains (0190, ann, a token of somebody's)."
    assert "token" in str(refused), "as the driver would say it"
    problem = unstorable(refused)
    assert (problem.status, problem.code) == (422, "unstorable-value")
    assert problem.detail == (
        'a value cannot be stored or compared: new row for relation "tasks" violates check constraint "tasks_priority"'
    )


def test_what_json_cannot_hold_is_told_as_it_is() -> None:
    assert unstorable(Unstorable("it has no end")).detail.endswith("compared: it has no end")
