"""The features of this build."""

from windlass.shared.features.feature import Feature
from windlass.shared.features.memory.subscriber import MEMORY
from windlass.shared.features.projects.subscriber import PROJECTS
from windlass.shared.features.schedules.subscriber import SCHEDULES
from windlass.shared.features.webhooks.fan_out import WEBHOOKS
from windlass.shared.features.webhooks.turn import DELIVERIES
from windlass.shared.features.workflows.subscriber import WORKFLOWS

FEATURES: tuple[Feature, ...] = (MEMORY, PROJECTS, WORKFLOWS, SCHEDULES, WEBHOOKS, DELIVERIES)
