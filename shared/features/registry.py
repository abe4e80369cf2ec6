"""The features of this build."""

from windlass.shared.features.feature import Feature

FEATURES: tuple[Feature, ...] = ()
