"""The shapes that come in, checked field by field."""

from typing import Annotated, Any, Literal, Optional

from pydantic import ConfigDict, Field, create_model

from windlass.services.api.access.reasons import Reason
from windlass.shared.actors.new_task import NewTask, UserId
from windlass.shared.filters import Id, Label
from windlass.shared.forms import Form, at_most

MOST_ITEMS = 1000
MOST_PROJECTS = 100

NOT_OF_AN_ITEM = frozenset({
    "depends_on", "workflow_id", "parent_task_id", "dedupe_key", "dedupe_ttl_seconds", "project_id", "user_id",
    "webhook_url",
})  # fmt: skip
"""What a task may say and an item may not: it stands alone, in its project, and is its owner's."""

STRICT = ConfigDict(extra="forbid", frozen=True, strict=True)


_annotated: Any = Annotated
_optional: Any = Optional


def _fields() -> dict[str, Any]:
    """A task's fields, each of which may be left out: what an item leaves out the project's defaults may give."""
    fields = {name: field for name, field in NewTask.model_fields.items() if name not in NOT_OF_AN_ITEM}
    return {
        name: (_annotated[_optional[_annotated[(field.annotation, name, *field.metadata)]], said], None)
        for name, field in fields.items()
        for said in [Field(description=field.description)]
    }


class Strict(Form):
    model_config = STRICT


class Titled(Strict):
    """What an item has beside a task's fields."""

    title: Annotated[Label | None, Field(description="What to call it in a list.")] = None


class Placed(Titled):
    """Where an item is to stand, and what is to be another: each field replaces the one that was there."""

    before: Annotated[Id | None, Field(description="Before this item.")] = None
    after: Annotated[Id | None, Field(description="Behind this item.")] = None


TaskDefaults: Any = create_model(
    "TaskDefaults",
    __base__=Strict,
    __doc__="What the tasks of a project's items have in common: a task's own fields.",
    **_fields(),
)
NewItem: Any = create_model(
    "NewItem", __base__=Titled, __doc__="A task to be: a task's fields, over the project's defaults.", **_fields()
)
ItemChange: Any = create_model("ItemChange", __base__=Placed, __doc__=Placed.__doc__, **_fields())


class NewItems(Form):
    """Items for the end of the backlog, in this order; or the fields of one alone."""

    model_config = STRICT

    items: Annotated[list[NewItem], Field(min_length=1, max_length=MOST_ITEMS), at_most(MOST_ITEMS)]


OnFailure = Annotated[
    Literal["stop", "continue"], Field(description="What a loop does after a run that died: it ends, or goes on.")
]
Mode = Annotated[Literal["single", "loop"], Field(description="One run, or one after the other.")]


class NewProject(Form):
    """A project to be."""

    model_config = STRICT

    name: Label
    defaults: TaskDefaults = TaskDefaults()
    on_failure: OnFailure = "stop"
    user_id: Annotated[UserId | None, Field(description="Whose project it is; for admins alone.")] = None


class ProjectChange(Form):
    """What is to be another. Items keep the defaults that they were written under."""

    model_config = STRICT

    name: Label | None = None
    defaults: TaskDefaults | None = None
    on_failure: OnFailure | None = None


class Run(Form):
    """How to run."""

    model_config = STRICT

    mode: Mode = "single"
    item_id: Annotated[Id | None, Field(description="This item, instead of the first; a loop begins there.")] = None
    reason: Reason | None = None


class Batch(Form):
    """The same for many projects."""

    model_config = STRICT

    action: Literal["run", "stop", "force-stop"]
    project_ids: Annotated[list[Id], Field(min_length=1, max_length=MOST_PROJECTS), at_most(MOST_PROJECTS)]
    mode: Mode = "single"
    reason: Reason | None = None
