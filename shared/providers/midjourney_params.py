"""What midapi takes for each action, by its own names. Its documentation gives no ranges, so it is the one to judge."""
# ruff: noqa: N815 - the names are midapi's

from typing import Annotated

from pydantic import Field

from windlass.shared.providers.params import Params

Word = Annotated[str, Field(max_length=200)]


class Picture(Params):
    """Without `taskType`, `fileUrls` and `callBackUrl`: these are the action, its picture, and where we are."""

    speed: Word | None = None
    aspectRatio: Word | None = None
    version: Word | None = None
    variety: int | None = None
    stylization: int | None = None
    weirdness: int | None = None
    waterMark: Word | None = None
    enableTranslation: bool | None = None


class Film(Picture):
    """The same, and how it moves."""

    motion: Word | None = None
    videoBatchSize: int | None = None


ACTIONS: dict[str, type[Params]] = {"txt2img": Picture, "img2img": Picture, "img2vid": Film}
