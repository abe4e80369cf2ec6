"""How often a job is asked about, by what is known of its provider."""

from windlass.services.actors.media.polling import MOST_HEARD, Polling


def pauses(polling: Polling, number: int = 5) -> list[float]:
    one = polling.pauses("one", 3)
    return [one.pause() for _ in range(number)]


def test_who_is_not_known_to_call_back_is_asked_as_configured() -> None:
    polling = Polling()
    polling.learned("another", by_callback=True)
    assert pauses(polling) == [3, 3, 3, 3, 3]


def test_who_calls_back_is_asked_more_and_more_seldom() -> None:
    polling = Polling()
    polling.learned("one", by_callback=True)
    assert pauses(polling) == [10, 20, 40, 60, 60]


def test_a_poll_that_was_quicker_once_is_not_the_last_word_and_some_are() -> None:
    polling = Polling()
    for _ in range(100):
        polling.learned("one", by_callback=True)
    polling.learned("one", by_callback=False)
    assert pauses(polling, 1) == [10]
    waiting = polling.pauses("one", 3)
    assert waiting.pause() == 10
    for _ in range(MOST_HEARD):
        polling.learned("one", by_callback=False)
    assert waiting.pause() == 3, "also by who waits already"
    polling.learned("one", by_callback=True)
    assert pauses(polling, 1) == [10]
