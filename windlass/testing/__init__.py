"""Actors under test: one attempt after the other, told to stop, out of time, cut off or killed wherever you like.

from windlass.testing import attempt

with attempt(translate, text="hi") as run:
    run.crash_after("draft")
    run.again()
    assert run.result == "…"
    assert [step.name for step in run.steps] == ["draft", "polish"]

No servers, and none of the server's packages: the rules of the context are the real ones, kept in memory. Where
pydantic is installed the payload is read by the declaration's own rules, and one of the wrong type fails as it would in
production. With `database_url=…`, a database that `windlass migrate` has seen, the same test runs under real claims.
"""

from windlass.testing.memory import Step
from windlass.testing.run import Misused, NotCompleted, Run, attempt
from windlass.testing.views import Crashed

__all__ = ["Crashed", "Misused", "NotCompleted", "Run", "Step", "attempt"]
