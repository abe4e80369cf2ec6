"""Each subscription of a task has one owner."""

import pytest

from windlass.shared.concerns import SUBSCRIBERS, Concern
from windlass.shared.features.registry import FEATURES
from windlass.shared.store.tellers import TELLERS


@pytest.mark.parametrize("concern", set(Concern) - {Concern.REFERENCES}, ids=lambda concern: concern.word)
def test_a_subscription_has_either_a_teller_or_a_subscriber(concern: Concern) -> None:
    assert (concern in TELLERS) != (concern in SUBSCRIBERS)


def test_each_subscriber_is_a_feature_of_this_build() -> None:
    assert sorted(concern.word for concern in SUBSCRIBERS) == sorted(feature.name for feature in FEATURES)
