"""What can be said of a project and of its items."""

from collections.abc import Mapping
from typing import Any, TypedDict
from uuid import UUID

from windlass.client.options import TaskOptions
from windlass.client.projects.documents import OnFailure

ProjectId = str | UUID
ItemId = str | UUID


class ItemFields(TaskOptions, total=False):
    """A task's fields, as far as an item and a project's defaults may have them."""

    actor: str
    payload: Mapping[str, Any]


class NewItem(ItemFields, total=False):
    """One item of a backlog: what it leaves out the project's defaults give."""

    title: str | None


class ProjectChange(TypedDict, total=False):
    """Items keep the defaults that they were written under."""

    name: str
    defaults: ItemFields
    on_failure: OnFailure
