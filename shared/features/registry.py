"""The features of this build."""

from windlass.shared.features.feature import Feature
from windlass.shared.features.memory.subscriber import MEMORY

FEATURES: tuple[Feature, ...] = (MEMORY,)
