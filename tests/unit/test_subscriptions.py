"""Each subscription of a task has one owner."""

from windlass.shared.concerns import OWNERS, RECEIVES_SUBMITS, SUBJECTS, SUBSCRIBERS, Concern
from windlass.shared.features.registry import FEATURES


def test_a_subscription_has_a_subscriber_or_is_the_engine_s_own() -> None:
    assert set(Concern) - set(SUBSCRIBERS) == {Concern.KEY, Concern.REFERENCES}


def test_each_subscriber_is_a_feature_of_this_build() -> None:
    assert sorted(concern.word for concern in SUBSCRIBERS) == sorted(feature.name for feature in FEATURES)


def test_only_subscribers_name_subjects_receive_submits_or_own_tasks() -> None:
    assert set(SUBJECTS) | set(RECEIVES_SUBMITS) | set(OWNERS) <= set(SUBSCRIBERS)
