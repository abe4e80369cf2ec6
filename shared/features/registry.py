"""The features of this build."""

from windlass.shared.features.feature import Feature
from windlass.shared.features.memory.subscriber import MEMORY
from windlass.shared.features.schedules.subscriber import SCHEDULES

FEATURES: tuple[Feature, ...] = (MEMORY, SCHEDULES)
