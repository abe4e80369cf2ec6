"""`@actor(schedule=…)`: a cron expression alone, or with what else a schedule has."""

from windlass import actor


def test_a_schedule_is_an_expression_or_more() -> None:
    @actor(schedule="30 2 * * *")
    def nightly() -> None: ...

    @actor(schedule={"every_seconds": 60, "payload": {"text": "hi"}})
    def often(text: str) -> None: ...

    @actor
    def never() -> None: ...

    assert nightly.schedule == {"cron": "30 2 * * *"}
    assert often.schedule == {"every_seconds": 60, "payload": {"text": "hi"}}
    assert never.schedule is None
