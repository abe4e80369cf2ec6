"""What Leonardo takes for each action, by its own names and within the ranges of its documentation."""
# ruff: noqa: N815 - the names are Leonardo's

from typing import Annotated, Any

from pydantic import Field

from windlass.shared.providers.params import Params

Text = Annotated[str, Field(max_length=4000)]
Side = Annotated[int, Field(ge=32, le=1536, multiple_of=8)]


class TextToImage(Params):
    """`POST /generations`, without what names pictures of the account (`init_image_id`, `controlnets`): an order begins
    with the picture that its task names, which is the user's own, and with no other."""

    negative_prompt: Text | None = None
    modelId: Text | None = None
    num_images: Annotated[int, Field(ge=1, le=8)] | None = None
    width: Side | None = None
    height: Side | None = None
    guidance_scale: Annotated[float, Field(ge=1, le=20)] | None = None
    num_inference_steps: Annotated[int, Field(ge=10, le=60)] | None = None
    seed: int | None = None
    scheduler: Text | None = None
    presetStyle: Text | None = None
    alchemy: bool | None = None
    photoReal: bool | None = None
    photoRealVersion: Text | None = None
    promptMagic: bool | None = None
    ultra: bool | None = None
    contrast: float | None = None
    transparency: bool | Text | None = None
    public: bool | None = None
    tiling: bool | None = None
    elements: Annotated[list[dict[str, Any]], Field(max_length=20)] | None = None
    enhancePrompt: bool | None = None


class ImageToImage(TextToImage):
    """The same, and how much of the picture stays."""

    init_strength: Annotated[float, Field(ge=0, le=1)] | None = None


class ImageToVideo(Params):
    """`POST /generations-image-to-video`, without `imageId` and `imageType`."""

    negativePrompt: Text | None = None
    resolution: Text | None = None
    frameInterpolation: bool | None = None
    isPublic: bool | None = None
    promptEnhance: bool | None = None
    seed: int | None = None
    elements: Annotated[list[dict[str, Any]], Field(max_length=20)] | None = None


ACTIONS: dict[str, type[Params]] = {"txt2img": TextToImage, "img2img": ImageToImage, "img2vid": ImageToVideo}
